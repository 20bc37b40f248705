"""Reads the files beside the linker of an overlay: the toolkit's release, and whether to add notes.

`overlay.py` writes the files. Every start under the name nvlink reads the release, so this module
imports only small modules.
"""

from __future__ import annotations

import os

from pylink.diagnostics.nvlink import NOTES_FILE, RELEASE_FILE
from pylink.facts.releases import FOLLOWED_NAMES

# A file in `bin` of an overlay whose links use a server, as with PYLINK_SERVER=auto. The native
# launcher, which starts pylink, looks for it.
SERVE_FILE = "nvlink.serve"


def toolkit_release(program: str, search: str) -> str | None:
    """Return the CUDA release of the toolkit overlay from which this program was started.

    None outside of an overlay, or for a release that links cannot follow. `program` is the name
    under which the program was started. A name without a directory is searched for in `search`, the
    PATH.
    """
    directory = os.path.dirname(program) or _directory_of(program, search)
    if not directory:  # not found; do not use the current directory
        return None
    try:
        with open(os.path.join(directory, RELEASE_FILE), encoding="ascii") as stream:
            release = stream.read(16).strip()
    except (OSError, ValueError):
        return None
    return release if release in FOLLOWED_NAMES else None


def wants_notes(program: str, search: str) -> bool | None:
    """Return True if `program`, as in `toolkit_release`, is in an overlay with notes, else None."""
    directory = os.path.dirname(program) or _directory_of(program, search)
    return True if directory and os.path.exists(os.path.join(directory, NOTES_FILE)) else None


def _directory_of(program: str, search: str) -> str:
    """Return the first directory of a search path that contains the program; empty if none does."""
    for directory in search.split(os.pathsep):
        if os.access(os.path.join(directory, program), os.X_OK):
            return directory
    return ""
