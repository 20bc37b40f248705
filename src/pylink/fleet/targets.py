"""Finds the target of a file by its directory.

`gpu/CMakeFiles/app.dir/a.cu.o` belongs to `gpu/app` (CMake), `pkg/_objs/app/a.o` to `pkg/app`
(Bazel). An archive is a target of its own, and any other file belongs to its directory. `manifest`
reads targets from a file instead.
"""

from __future__ import annotations

import os
import re

from pylink._native.filepaths import directories_of
from pylink.fleet.columns import show_bytes

# Directories in which build systems put the objects of a target.
_CMAKE = re.compile(rb"(?:^|(?P<before>.*)/)CMakeFiles/(?P<name>[^/]+)\.dir/")
_BAZEL = re.compile(rb"(?:^|(?P<before>.*)/)_objs/(?P<name>[^/]+)/")
# Suffixes of files that are targets of their own.
_ARCHIVES = (b".a", b".lib", b".lo")


def directory_targets(ends: bytes, text: bytes) -> tuple[list[str], bytes]:
    """Return the targets of files, and the number of each file's target (int32).

    `ends` and `text` are columns of `Files`.
    """
    directories, are_containers, numbers = directories_of(ends, text, list(_ARCHIVES))
    names = [
        show_bytes(name) if is_container else _target_of(name)
        for name, is_container in zip(directories, are_containers, strict=True)
    ]
    return names, numbers


def _target_of(directory: bytes) -> str:
    """Return the target that CMake or Bazel puts into a directory, or else the directory's name."""
    for pattern in (_CMAKE, _BAZEL):
        match = pattern.match(directory + b"/")
        if match:
            return show_bytes(os.path.join(match["before"] or b"", match["name"]))
    return show_bytes(directory or b".")
