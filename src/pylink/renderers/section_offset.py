"""Where a section of a cubin starts, found anew for a report that names a section.

So phases need not carry file offsets along for the rare diagnostic.
"""

from __future__ import annotations

import os
from mmap import ACCESS_READ, mmap

from pylink._native.elfheaders import read_sections
from pylink.facts.elf import EM_CUDA


def section_offset(path: str, name: str) -> int | None:
    """The file offset of the first section of that name; None when the file does not tell.

    A host object with device code has no sections of that in its own table. The names may be bytes
    that are not UTF-8, decoded with surrogateescape.
    """
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            _, machine, sections = read_sections(data)
    except (OSError, ValueError):
        return None
    wanted = os.fsencode(name)
    offsets = (section.offset for section in sections if section.name == wanted)
    return next(offsets, None) if machine == EM_CUDA else None
