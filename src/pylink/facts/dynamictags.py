"""Tags and flags of the dynamic segment of a host's program or library: System V ABI, GNU."""

from __future__ import annotations

DT_NULL, DT_NEEDED, DT_PLTRELSZ, DT_HASH, DT_STRTAB, DT_SYMTAB = 0, 1, 2, 4, 5, 6
DT_RELA, DT_RELASZ, DT_STRSZ, DT_SONAME, DT_RPATH, DT_SYMBOLIC = 7, 8, 10, 14, 15, 16
DT_JMPREL, DT_RUNPATH, DT_FLAGS = 23, 29, 30
DT_GNU_HASH, DT_FLAGS_1 = 0x6FFFFEF5, 0x6FFFFFFB
DF_SYMBOLIC, DF_1_PIE = 2, 0x08000000
