"""Numbers of ELF headers, sections and symbols as CUDA uses them, with the names tools print.

The generic ones are those of the System V ABI. The CUDA ones were read off the public `cuobjdump`
13.2, which was shown cubins with every number in turn; RELA, CUDA_INFO and SYMTAB stand there for
the mercury numbers 0x70000082, 83 and 85, which are told apart here.
"""

from __future__ import annotations

EM_CUDA = 190
ET_REL = 1
ET_EXEC = 2

FILE_TYPES = {0: "NONE", 1: "REL", 2: "EXEC", 3: "DYN", 4: "CORE"}
PT_LOAD, PT_PHDR = 1, 6
SEGMENT_TYPES = {PT_LOAD: "PT_LOAD", PT_PHDR: "PT_PHDR"}

SHT_NULL, SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA = 0, 1, 2, 3, 4
SHT_NOTE, SHT_NOBITS, SHT_REL, SHT_SYMTAB_SHNDX = 7, 8, 9, 18
SHT_CUDA_INFO = 0x70000000
SHT_CUDA_CALLGRAPH = 0x70000001
SHT_CUDA_PROTOTYPE = 0x70000002
SHT_CUDA_RESOLVED_RELA = 0x70000003
SHT_CUDA_GLOBAL = 0x70000007
SHT_CUDA_GLOBAL_INIT = 0x70000008
SHT_CUDA_LOCAL = 0x70000009
SHT_CUDA_SHARED = 0x7000000A
SHT_CUDA_RELOCINFO = 0x7000000B
SHT_CUDA_RESERVED_SHARED = 0x70000015
SHT_CUDA_CAPMERC = 0x70000016
SHT_CUDA_CONSTANT_B0 = 0x70000064  # of bank 0; those of the other banks follow
SHT_CUDA_CONSTANT_USER = 0x7000007C
SHT_CUDA_MERC_RELA = 0x70000082
SHT_CUDA_MERC_INFO = 0x70000083
SHT_CUDA_CONSTANT_OPTIMIZER = 0x70000084
SHT_CUDA_MERC_SYMTAB = 0x70000085
SHT_CUDA_COMPAT = 0x70000086
SHT_CUDA_MERC_RESOLVED_RELA = 0x70000088
SHT_CUDA_MERC_CALLGRAPH = 0x7000008A
SHT_CUDA_MERC_PROTOTYPE = 0x7000008B
# Sections of these types have no bytes in the file.
NO_BYTES = frozenset(
    {SHT_NOBITS, SHT_CUDA_GLOBAL, SHT_CUDA_LOCAL, SHT_CUDA_SHARED, SHT_CUDA_RESERVED_SHARED}
)

SECTION_TYPES = {
    0: "NULL",
    1: "PROGBITS",
    2: "SYMTAB",
    3: "STRTAB",
    SHT_RELA: "RELA",
    SHT_NOTE: "NOTE",
    SHT_NOBITS: "NOBITS",
    SHT_REL: "REL",
    18: "SYMTAB_SHNDX",
    SHT_CUDA_INFO: "CUDA_INFO",
    0x70000001: "CUDA_CALLGRAPH",
    0x70000002: "CUDA_PROTOTYPE",
    0x70000003: "CUDA_RESOLVED_RELA",
    0x70000004: "CUDA_METADATA",
    0x70000006: "CUDA_CONSTANT",
    SHT_CUDA_GLOBAL: "CUDA_GLOBAL",
    0x70000008: "CUDA_GLOBAL_INIT",
    SHT_CUDA_LOCAL: "CUDA_LOCAL",
    SHT_CUDA_SHARED: "CUDA_SHARED",
    0x7000000B: "CUDA_RELOCINFO",
    0x7000000C: "CUDA_MERCURY",
    0x7000000D: "CUDA_MERCURY_SASS_MAP",
    0x7000000E: "CUDA_UFT",
    0x70000010: "CUDA_UIDX",
    0x70000011: "CUDA_UFT_ENTRY",
    0x70000012: "CUDA_UDT",
    0x70000014: "CUDA_UDT_ENTRY",
    SHT_CUDA_RESERVED_SHARED: "CUDA_RESERVED_SHARED",
    0x70000016: "CUDA_CAPMERC",
    **{0x70000064 + bank: f"CUDA_CONSTANT_B{bank}" for bank in range(8)},
    0x70000078: "CUDA_MERCURY_CONSTANT_PARAMS",
    0x70000079: "CUDA_MERCURY_CONSTANT_IMGHDR",
    0x7000007A: "CUDA_MERCURY_CONSTANT_DRIVER",
    0x7000007B: "CUDA_MERCURY_CONSTANT_OPT",
    0x7000007C: "CUDA_MERCURY_CONSTANT_USER",
    0x7000007D: "CUDA_MERCURY_CONSTANT_PIC",
    0x7000007E: "CUDA_MERCURY_CONSTANT_TOOLS",
    0x70000082: "CUDA_MERCURY_RELA",
    0x70000083: "CUDA_MERCURY_INFO",
    0x70000084: "CUDA_MERCURY_CONSTANT_OPT",
    0x70000085: "CUDA_MERCURY_SYMTAB",
    0x70000086: "CUDA_COMPAT_INFO",
    0x70000087: "CUDA_EMBEDDED_HOST",
    0x70000088: "CUDA_MERCURY_RESOLVED_RELA",
    0x70000089: "CUDA_METADATA_TRACE_MARK",
    0x7000008A: "CUDA_MERCURY_CALLGRAPH",
    0x7000008B: "CUDA_MERCURY_PROTOTYPE",
}

SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR, SHF_INFO_LINK = 1, 2, 4, 0x40
SHF_CUINFO, SHF_TKINFO = 0x1000000, 0x2000000
# Of .text.F before 13.0 and sm_100: how many barriers the function uses, from bit 20 on.
SHF_BARRIERS = 0x7F00000
SHF_BARRIERS_FIRST = 20
SHF_MERCURY = 0x10000000
SECTION_FLAGS = {
    SHF_WRITE: "W",
    SHF_ALLOC: "A",
    SHF_EXECINSTR: "X",
    SHF_INFO_LINK: "I",
    SHF_MERCURY: "M",
}

SHN_UNDEF, SHN_ABS, SHN_COMMON, SHN_XINDEX = 0, 0xFFF1, 0xFFF2, 0xFFFF
SPECIAL_SECTIONS = {SHN_UNDEF: "UNDEF", SHN_ABS: "ABS", SHN_COMMON: "COMMON"}

STB_LOCAL, STB_WEAK = 0, 2
BINDINGS = {STB_LOCAL: "LOCAL", 1: "GLOBAL", STB_WEAK: "WEAK"}
STT_OBJECT, STT_FUNC, STT_SECTION, STT_CUDA_OBJECT = 1, 2, 3, 13
STT_IMAGES = (10, 11, 12)  # references to textures, samplers and surfaces, which PTX declares
SYMBOL_TYPES = {
    0: "NOTYPE",
    STT_OBJECT: "OBJECT",
    STT_FUNC: "FUNC",
    STT_SECTION: "SECTION",
    4: "FILE",
    10: "CUDA_TEXTURE",
    11: "CUDA_SAMPLER",
    12: "CUDA_SURFACE",
    STT_CUDA_OBJECT: "CUDA_OBJECT",
}
VISIBILITIES = ("DEFAULT", "INTERNAL", "HIDDEN", "PROTECTED")
# Bits 5 to 7 of st_other.
STATE_SPACES = {1: "GLOBAL", 2: "SHARED", 3: "LOCAL", 4: "CONSTANT", 5: "RESERVED_SHARED"}


def other_names(other: int, symbol_type: int) -> list[str]:
    """What st_other says besides the visibility: kind of function or object, state space."""
    names = []
    function = symbol_type == STT_FUNC
    if other & 0x04:
        names.append("UNIFIED_FUNC" if function else "MANAGED")
    if other & 0x08:
        names.append("OBSCURE")
    if other & 0x10:
        names.append("ENTRY" if function else "UNIFIED_OBJECT")
    space = other >> 5
    if space:
        names.append(STATE_SPACES.get(space, f"space {space}"))
    return names


def flag_letters(flags: int) -> str:
    """Letters of sh_flags, and the rest as a number."""
    letters = "".join(letter for bit, letter in SECTION_FLAGS.items() if flags & bit)
    rest = flags & ~sum(SECTION_FLAGS)
    return " ".join(part for part in (letters, f"{rest:#x}" if rest else "") if part)
