"""What an overlay says to its linker, in files beside it: the toolkit's release, and notes or not.

`overlay.py` writes the files. Every start under the name nvlink looks for the release, and one that
has something to say for the notes, so this loads nothing.
"""

from __future__ import annotations

import os

from pylink.diagnostics.nvlink import NOTES_FILE, RELEASE_FILE
from pylink.facts.releases import FOLLOWED_NAMES

# An empty file there: links have a server, as with PYLINK_SERVER=auto (the launcher looks for it).
SERVE_FILE = "nvlink.serve"


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
    return release if release in FOLLOWED_NAMES else None


def wants_notes(program: str, search: str) -> bool | None:
    """True in an overlay with notes; None elsewhere. Arguments are those of `toolkit_release`."""
    folder = os.path.dirname(program) or _folder_of(program, search)
    return True if folder and os.path.exists(os.path.join(folder, NOTES_FILE)) else None


def _folder_of(program: str, search: str) -> str:
    """The first folder of a search path that has the program."""
    for folder in search.split(os.pathsep):
        if os.access(os.path.join(folder, program), os.X_OK):
            return folder
    return ""
