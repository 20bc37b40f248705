"""Where a section of an ELF64 file starts, found anew for a report that names a section.

Reads only the headers, so that phases need not carry file offsets along for the rare diagnostic.
"""

from __future__ import annotations

import os
import struct

from pylink.facts.elf import EM_CUDA, SHN_XINDEX
from pylink.facts.records import EHDR, SHDR

_MOST_SECTIONS = 0x100000
_MOST_NAMES = 1 << 26


def section_offset(path: str, name: str) -> int | None:
    """The file offset of the first section of that name; None when the file does not tell.

    A host object with device code has no sections of that in its own table. The names may be bytes
    that are no UTF-8, decoded with surrogateescape.
    """
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            ident, _, machine, _, _, _, table, *_, entry_size, count, names_index = EHDR.unpack(
                file.read(EHDR.size)
            )
            if ident[:5] != b"\x7fELF\x02" or machine != EM_CUDA or entry_size != SHDR.size:
                return None
            file.seek(table)
            if count == 0 or names_index == SHN_XINDEX:  # extended numbering: entry 0 has both
                _, _, _, _, _, size, link, *_ = SHDR.unpack(file.read(SHDR.size))
                count = count or size
                names_index = link if names_index == SHN_XINDEX else names_index
                file.seek(table)
            headers = file.read(min(count, _MOST_SECTIONS) * SHDR.size)
            _, _, _, _, start, size, *_ = SHDR.unpack_from(headers, names_index * SHDR.size)
            file.seek(start)
            names = file.read(min(size, _MOST_NAMES))
    except (OSError, OverflowError, ValueError, struct.error):
        return None
    wanted = os.fsencode(name) + b"\0"
    for at in range(0, len(headers) - SHDR.size + 1, SHDR.size):
        name_at, _, _, _, offset, *_ = SHDR.unpack_from(headers, at)
        if names.startswith(wanted, name_at):
            return int(offset)
    return None
