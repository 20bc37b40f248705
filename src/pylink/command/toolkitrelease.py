"""The release of the CUDA toolkit that pylink stands in as the linker: an overlay has it in a file.

`overlay.py` writes the file. Every start under the name nvlink looks for it, so this loads nothing.
"""

from __future__ import annotations

import os

from pylink.facts.releases import FOLLOWED

# Beside the program `nvlink` of an overlay: the name of a release, such as 13.2.
RELEASE_FILE = "nvlink.release"


def toolkit_release(program: str, search: str) -> str | None:
    """The release of the overlay that `program` was started from; None outside of one.

    `program` is the name that it was started under, `search` the PATH by which one without a folder
    was found. A release that cannot be followed counts as none.
    """
    folder = os.path.dirname(program) or _folder_of(program, search)
    if not folder:  # whoever started it said no place; the current folder is none
        return None
    try:
        with open(os.path.join(folder, RELEASE_FILE), encoding="ascii") as stream:
            release = stream.read(16).strip()
    except (OSError, ValueError):
        return None
    return release if release in FOLLOWED else None


def _folder_of(program: str, search: str) -> str:
    """The first folder of a search path that has the program."""
    for folder in search.split(os.pathsep):
        if os.access(os.path.join(folder, program), os.X_OK):
            return folder
    return ""
