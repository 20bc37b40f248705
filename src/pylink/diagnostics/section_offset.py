"""Where a section of an ELF64 file starts, found anew for a report that names a section.

Reads only the headers, so that phases need not carry file offsets along for the rare diagnostic.
"""

from __future__ import annotations

import os
import struct

from pylink.elf.constants import EM_CUDA

# ELF64 header: e_shoff at 40, e_shentsize, e_shnum and e_shstrndx at 58; section header: sh_name
# at 0, sh_offset and sh_size at 24 (System V gABI, chapter 4).
_EHDR_SIZE = 64
_SHDR_SIZE = 64
_MACHINE = EM_CUDA.to_bytes(2, "little")
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
            header = file.read(_EHDR_SIZE)
            if len(header) < _EHDR_SIZE or header[:5] != b"\x7fELF\x02":
                return None
            (table,) = struct.unpack_from("<Q", header, 40)
            entry_size, count, names_index = struct.unpack_from("<HHH", header, 58)
            if header[18:20] != _MACHINE or entry_size != _SHDR_SIZE:
                return None
            file.seek(table)
            if count == 0 or names_index == 0xFFFF:  # extended numbering: entry 0 has both
                first = file.read(_SHDR_SIZE)
                count = count or struct.unpack_from("<Q", first, 32)[0]
                if names_index == 0xFFFF:
                    (names_index,) = struct.unpack_from("<I", first, 40)
                file.seek(table)
            headers = file.read(min(count, _MOST_SECTIONS) * _SHDR_SIZE)
            start, size = struct.unpack_from("<QQ", headers, names_index * _SHDR_SIZE + 24)
            file.seek(start)
            names = file.read(min(size, _MOST_NAMES))
    except (OSError, OverflowError, ValueError, struct.error):
        return None
    wanted = os.fsencode(name)
    for at in range(0, len(headers) - _SHDR_SIZE + 1, _SHDR_SIZE):
        (name_at,) = struct.unpack_from("<I", headers, at)
        if names[name_at : name_at + len(wanted) + 1] == wanted + b"\0":
            return int(struct.unpack_from("<Q", headers, at + 24)[0])
    return None
