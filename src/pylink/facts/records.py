"""The records of ELF64 files that Python reads, as in the System V gABI, chapters 4 and 5."""

from __future__ import annotations

from struct import Struct

# sh_name, type, flags, addr, offset, size, link, info, addralign, entsize.
SHDR = Struct("<IIQQQQIIQQ")
# r_offset, the halves of r_info (type and symbol), and r_addend.
REL = Struct("<QII")
RELA = Struct("<QIIq")
