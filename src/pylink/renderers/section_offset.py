"""Finds the file offset of a section of a cubin for a diagnostic that names it.

The file is opened again, so that phases need not carry file offsets for rare diagnostics.
"""

from __future__ import annotations

import os
from mmap import ACCESS_READ, mmap

from pylink._native.elfheaders import read_sections
from pylink.facts.elf import EM_CUDA


def section_offset(path: str, name: str) -> int | None:
    """Return the file offset of a cubin's first section `name`; None without it or for other files.

    Names that are not UTF-8 are decoded with surrogateescape.
    """
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            elf = read_sections(data)
    except (OSError, ValueError):
        return None
    encoded_name = os.fsencode(name)
    offsets = (section.offset for section in elf.sections if section.name == encoded_name)
    return next(offsets, None) if elf.machine == EM_CUDA else None
