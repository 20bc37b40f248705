"""Finds the target of a file by its folder.

`gpu/CMakeFiles/app.dir/a.cu.o` belongs to `gpu/app` (CMake), `pkg/_objs/app/a.o` to `pkg/app`
(Bazel). An archive is a target of its own, and any other file belongs to its folder. `manifest`
reads targets from a file instead.
"""

from __future__ import annotations

import os
import re

from pylink._native.filepaths import folders_of
from pylink.fleet.columns import show_bytes

# Folders in which build systems put the objects of a target.
_CMAKE = re.compile(rb"(?:^|(?P<before>.*)/)CMakeFiles/(?P<name>[^/]+)\.dir/")
_BAZEL = re.compile(rb"(?:^|(?P<before>.*)/)_objs/(?P<name>[^/]+)/")
# Files that are targets of their own.
_ARCHIVES = (b".a", b".lib", b".lo")


def folder_targets(ends: bytes, text: bytes) -> tuple[list[str], bytes]:
    """The targets of files by their folders, and the number of each file's target (int32).

    The columns are those of `Files`.
    """
    folders, alone, numbers = folders_of(ends, text, list(_ARCHIVES))
    names = [
        show_bytes(name) if is_alone else _of_folder(name)
        for name, is_alone in zip(folders, alone, strict=True)
    ]
    return names, numbers


def _of_folder(folder: bytes) -> str:
    for pattern in (_CMAKE, _BAZEL):
        match = pattern.match(folder + b"/")
        if match:
            return show_bytes(os.path.join(match["before"] or b"", match["name"]))
    return show_bytes(folder or b".")
