"""Numbers of the kinds of sections, with the names of such sections.

`sectiontable.py` describes the kinds. A link imports only the numbers; the build compiles the table
into native code.
"""

from __future__ import annotations

# Largest alignment, in bytes, of constants in a bank that nvlink packs because the bank is too
# full: the largest unit in which a constant is read. In such a bank, a constant is aligned to its
# size. The bank is aligned to PACKED_ALIGN if one of its constants has that size or more.
PACKED_ALIGN = 8

OTHER = 0  # any other section with contents
NULL = 1  # the null section; as the value of a field such as `twin`: no kind
SHSTRTAB = 2  # .shstrtab
STRTAB = 3  # .strtab
SYMTAB = 4  # .symtab
SYMTAB_SHNDX = 5  # .symtab_shndx
DEBUG = 6  # .debug_*, .nv_debug_*
TKINFO = 7  # .note.nv.tkinfo
CUINFO = 8  # .note.nv.cuinfo
INFO = 9  # .nv.info
COMPAT = 10  # .nv.compat
INFO_FUNC = 11  # .nv.info.*
CALLGRAPH = 12  # .nv.callgraph
PROTOTYPE = 13  # .nv.prototype
REL_ACTION = 14  # .nv.rel.action
RELOC = 15  # .rela.*, .rel.*
RESOLVED_RELA = 16  # .nv.resolvedrela.*
CONSTANT = 17  # .nv.constant*
CONSTANT_FUNC = 18  # .nv.constant*.*
CONSTANT0 = 19  # .nv.constant0.*
TEXT = 20  # .text.*
GLOBAL_INIT = 21  # .nv.global.init
GLOBAL = 22  # .nv.global
SHARED = 23  # .nv.shared.*
DEBUG_SHARED = 24  # .nv_debug.shared
LOCAL = 25  # .nv.local.*
CAPMERC = 26  # .nv.capmerc.text.*
MERC_DEBUG = 27  # .nv.merc.debug_*, .nv.merc.nv_debug_*
MERC_INFO = 28  # .nv.merc.nv.info
MERC_INFO_FUNC = 29  # .nv.merc.nv.info.*
MERC_RELA = 30  # .nv.merc.rela.*
MERC_CONSTANT = 31  # .nv.merc.nv.constant.user, .nv.merc.nv.constant.pic
MERC_GLOBAL_INIT = 32  # .nv.merc.nv.global.init
MERC_SYMTAB = 33  # .nv.merc.symtab
MERC_CONSTANT_FUNC = 34  # .nv.merc.nv.constant.optimizer.*
SYSTEM_SHARED = 35  # .nv.shared.reserved.0
MERC_SYSTEM_SHARED = 36  # .nv.merc.nv.shared.reserved.0
MERC_SYMTAB_SHNDX = 37  # .nv.merc.symtab_shndx
MERC_CALLGRAPH = 38  # .nv.merc.nv.callgraph
MERC_PROTOTYPE = 39  # .nv.merc.nv.prototype
