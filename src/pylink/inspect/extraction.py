"""Writes the device code of a file to separate files, named after their origin.

Names come from inputs, so only letters, digits and `._+-` are kept. Nothing is written outside of
the directory, no existing file is overwritten, and no symbolic link is followed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from pylink.facts.fatbinentries import is_fatbin
from pylink.facts.objectformats import sm_of_cubin
from pylink.inspect.containers import Part

# By kind: prefix of the architecture in a name, and suffix of the name.
NAME_PARTS = {"cubin": ("sm", ".cubin"), "PTX": ("compute", ".ptx"), "LTO-IR": ("lto", ".ltoir")}
_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")
MAX_STEM_SIZE = 100  # characters of a name that come from the input


def extract(parts: Iterable[Part], directory: Path) -> Iterator[tuple[Part, Path]]:
    """Write each part into the directory, and yield the parts with their files.

    The directory is created if it is missing. Parts without data, or of unknown kinds, are omitted.

    OSError if a file cannot be written, FileExistsError if it exists.
    """
    directory.mkdir(parents=True, exist_ok=True)
    counts: dict[str, int] = {}  # of files, by name
    for part in parts:
        if part.kind not in NAME_PARTS or not part.data:
            continue
        stem, ending = _make_name(part)
        count = counts[stem + ending] = counts.get(stem + ending, 0) + 1
        path = directory / (f"{stem}-{count}{ending}" if count > 1 else stem + ending)
        contents = part.data.rstrip(b"\0") if part.kind == "PTX" else part.data
        created = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with open(created, "wb") as file:
            file.write(contents)
        yield part, path


def _make_name(part: Part) -> tuple[str, str]:
    """Return stem and extension of a file name for a part; a number may be put between them."""
    prefix, ending = NAME_PARTS[part.kind]
    if is_fatbin(part.data):
        ending = ".fatbin"
    # The user knows the directory in `directory/lib.a:member.o`.
    stem = _UNSAFE.sub("_", part.name.rpartition("/")[2]).lstrip(".")[-MAX_STEM_SIZE:]
    arch = part.arch or sm_of_cubin(part.data)
    return f"{stem.removesuffix(ending) or 'code'}.{prefix}_{arch}", ending
