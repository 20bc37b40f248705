"""The records of ELF64 files that Python reads, as in the System V gABI, chapters 4 and 5."""

from __future__ import annotations

from struct import Struct

# e_ident, type, machine, version, entry, phoff, shoff, flags, and six sizes, counts and an index.
EHDR = Struct("<16sHHIQQQIHHHHHH")
# p_type, flags, offset, vaddr, paddr, filesz, memsz, align.
PHDR = Struct("<IIQQQQQQ")
# st_name, info, other, shndx, value, size.
SYM = Struct("<IBBHQQ")
# d_tag, d_val.
DYN = Struct("<QQ")
# sh_name, type, flags, addr, offset, size, link, info, addralign, entsize.
SHDR = Struct("<IIQQQQIIQQ")
# r_offset, the halves of r_info (type, then symbol), and in RELA r_addend.
REL = Struct("<QII")
RELA = Struct("<QIIq")
# REL and RELA with r_info as one number.
REL_INFO = Struct("<QQ")
RELA_INFO = Struct("<QQq")
# Sizes of the name and of the contents of a note in bytes, and its type.
NOTE_HEADER = Struct("<III")
# The contents of .note.nv.tkinfo: a version, and the offset of each of five strings after these.
TOOL_NOTE = Struct("<6I")
