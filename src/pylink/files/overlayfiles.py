"""Reads the files beside the linker of an overlay: the toolkit's release, and whether to add notes.

`command/overlay.py` writes the files. Every start under the name nvlink and every device-link step
reads them, so this module imports only small modules. `None` as the directory means that there is
no overlay.
"""

from __future__ import annotations

import os

from pylink.facts.releases import release_named

# Files in `bin` of a toolkit in which pylink takes nvlink's place. RELEASE_FILE has the toolkit's
# release, such as 13.2. If NOTES_FILE exists, notes follow the lines of nvlink.
RELEASE_FILE = "nvlink.release"
NOTES_FILE = "nvlink.notes"
# With this file, links use a server, as with PYLINK_SERVER=auto. The native launcher, which starts
# pylink, looks for it.
SERVE_FILE = "nvlink.serve"
# Limit of the characters that are read of a release.
LONGEST_RELEASE = 16


def find_binaries(program: str, search: str) -> str | None:
    """Return the directory from which this program was started; None if it is not found.

    `program` is the name under which the program was started. A name without a directory is
    searched for in `search`, the PATH. The current directory, which an empty element of PATH means,
    is not an overlay.
    """
    if os.path.dirname(program):
        return os.path.dirname(program)
    for directory in search.split(os.pathsep):
        if os.access(os.path.join(directory, program), os.X_OK):
            return directory or None
    return None


def read_release(binaries: str | None) -> str:
    """Return the release of the overlay as its toolkit names it; empty if the overlay has none."""
    if binaries is None:
        return ""
    try:
        with open(os.path.join(binaries, RELEASE_FILE), encoding="ascii") as stream:
            return stream.read(LONGEST_RELEASE).strip()
    except (OSError, ValueError):
        return ""


def followed_release(binaries: str | None) -> str | None:
    """Return the release that links of an overlay follow, by its name in `facts/releases.py`.

    None without a release, or for one that links cannot follow.
    """
    row = release_named(read_release(binaries))
    return None if row is None else row.name


def wants_notes(binaries: str | None) -> bool | None:
    """Return True in an overlay with notes; else None.

    A note is a line of pylink's own, after a message in nvlink's words.
    """
    is_marked = binaries is not None and os.path.exists(os.path.join(binaries, NOTES_FILE))
    return is_marked or None
