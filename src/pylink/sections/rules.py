"""What a section's name means: the one table that maps names to kinds.

Kernels test kinds (``rows.pxd`` has the same numbers), never names. `compiled` packs the table
into the rows that ``pylink._native.elfread`` matches, first rule first.
"""

from __future__ import annotations

OTHER = 0
NULL = 1
SHSTRTAB = 2
STRTAB = 3
SYMTAB = 4
SYMTAB_SHNDX = 5
DEBUG = 6
TKINFO = 7
CUINFO = 8
INFO = 9
COMPAT = 10
INFO_FUNC = 11
CALLGRAPH = 12
PROTOTYPE = 13
REL_ACTION = 14
RELOC = 15
RESOLVED_RELA = 16
CONSTANT = 17
CONSTANT_FUNC = 18
CONSTANT0 = 19
TEXT = 20
GLOBAL_INIT = 21
GLOBAL = 22
SHARED = 23
DEBUG_SHARED = 24
LOCAL = 25
CAPMERC = 26
MERC_DEBUG = 27
MERC_INFO = 28
MERC_INFO_FUNC = 29
MERC_RELA = 30
MERC_CONSTANT = 31
MERC_GLOBAL_INIT = 32
MERC_SYMTAB = 33
MERC_CONSTANT_FUNC = 34
SYSTEM_SHARED = 35
MERC_SYSTEM_SHARED = 36
MERC_SYMTAB_SHNDX = 37

EXACT = True
PREFIX = False

# Name, exact or prefix, kind. The reader splits CONSTANT further by bank and function.
RULES: tuple[tuple[bytes, bool, int], ...] = (
    (b".text.", PREFIX, TEXT),
    (b".nv.info", EXACT, INFO),
    (b".nv.info.", PREFIX, INFO_FUNC),
    (b".nv.constant", PREFIX, CONSTANT),
    (b".rela.", PREFIX, RELOC),
    (b".rel.", PREFIX, RELOC),
    (b".nv.shared.reserved.0", EXACT, SYSTEM_SHARED),
    (b".nv.merc.nv.shared.reserved.0", EXACT, MERC_SYSTEM_SHARED),
    (b".nv.shared.", PREFIX, SHARED),
    (b".nv.capmerc.text.", PREFIX, CAPMERC),
    (b".nv.merc.nv.info", EXACT, MERC_INFO),
    (b".nv.merc.nv.info.", PREFIX, MERC_INFO_FUNC),
    (b".nv.merc.rela.", PREFIX, MERC_RELA),
    (b".nv.merc.symtab", EXACT, MERC_SYMTAB),
    (b".nv.merc.symtab_shndx", EXACT, MERC_SYMTAB_SHNDX),
    (b".nv.merc.nv.constant.user", EXACT, MERC_CONSTANT),
    (b".nv.merc.nv.constant.optimizer.", PREFIX, MERC_CONSTANT_FUNC),
    (b".nv.merc.nv.global.init", EXACT, MERC_GLOBAL_INIT),
    (b".nv.merc.debug_", PREFIX, MERC_DEBUG),
    (b".nv.merc.nv_debug_", PREFIX, MERC_DEBUG),
    (b".debug_", PREFIX, DEBUG),
    (b".nv_debug_", PREFIX, DEBUG),
    (b".nv_debug.shared", EXACT, DEBUG_SHARED),
    (b".shstrtab", EXACT, SHSTRTAB),
    (b".strtab", EXACT, STRTAB),
    (b".symtab", EXACT, SYMTAB),
    (b".symtab_shndx", EXACT, SYMTAB_SHNDX),
    (b".note.nv.tkinfo", EXACT, TKINFO),
    (b".note.nv.cuinfo", EXACT, CUINFO),
    (b".nv.compat", EXACT, COMPAT),
    (b".nv.callgraph", EXACT, CALLGRAPH),
    (b".nv.prototype", EXACT, PROTOTYPE),
    (b".nv.rel.action", EXACT, REL_ACTION),
    (b".nv.global.init", EXACT, GLOBAL_INIT),
    (b".nv.global", EXACT, GLOBAL),
    (b".nv.local.", PREFIX, LOCAL),
    (b".nv.resolvedrela.", PREFIX, RESOLVED_RELA),
)

_TEXT_SIZE = 36


def compiled() -> bytes:
    """The table as packed rows: u16 kind, u8 length, u8 exact, 36 bytes of name."""
    return b"".join(
        kind.to_bytes(2, "little") + bytes((len(name), exact)) + name.ljust(_TEXT_SIZE, b"\0")
        for name, exact, kind in RULES
    )
