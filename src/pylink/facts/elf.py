"""Numbers of ELF headers, sections and symbols as CUDA uses them, with the names tools print.

The generic ones are those of the System V ABI. The CUDA ones are what the public `cuobjdump` 13.2
prints for cubins with each number. It prints RELA, CUDA_INFO and SYMTAB also for the mercury
numbers 0x70000082, 83 and 85, which have names of their own here.
"""

from __future__ import annotations

EM_CUDA = 190
EM_AARCH64 = 183
EM_X86_64 = 62
ET_REL, ET_EXEC, ET_DYN = 1, 2, 3
ET_WHOLE = 0xFF00  # a whole program that may still call libraries: `nvcc -ewp`
# Values of e_machine, each with its names in -cpu-arch and in `uname -m` ("" for none), and a name
# for people.
_MACHINES = (
    (3, "X86", "", "x86"),
    (21, "PPC64LE", "ppc64le", "PowerPC"),
    (40, "ARMv7", "", "ARM"),
    (EM_X86_64, "X86_64", "x86_64", "x86-64"),
    (EM_AARCH64, "AARCH64", "aarch64", "AArch64"),
    (EM_CUDA, "", "", "CUDA"),
    (243, "", "", "RISC-V"),
)
MACHINE_TITLES = {number: title for number, _, _, title in _MACHINES}
MACHINE_OF_CPU_ARCH = {cpu_arch: number for number, cpu_arch, _, _ in _MACHINES if cpu_arch}
MACHINE_OF_UNAME = {uname: number for number, _, uname, _ in _MACHINES if uname}
CPU_ARCH_OF_MACHINE = {number: cpu_arch for cpu_arch, number in MACHINE_OF_CPU_ARCH.items()}

EI_CLASS, EI_DATA, EI_OSABI, EI_ABIVERSION = 4, 5, 7, 8  # indices in e_ident
ELFCLASS64, ELFDATA2LSB = 2, 1
E_SHOFF = slice(40, 48)  # field of a 64-bit ELF header
FILE_TYPES = {0: "NONE", 1: "REL", 2: "EXEC", 3: "DYN", 4: "CORE"}
PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_PHDR = 1, 2, 3, 6
PF_X, PF_W, PF_R = 1, 2, 4
SEGMENT_TYPES = {PT_LOAD: "PT_LOAD", PT_PHDR: "PT_PHDR"}

SHT_NULL, SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA = 0, 1, 2, 3, 4
SHT_NOTE, SHT_NOBITS, SHT_REL, SHT_SYMTAB_SHNDX = 7, 8, 9, 18
SHT_DYNAMIC, SHT_DYNSYM = 6, 11
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
SHT_CUDA_CONSTANT_B0 = 0x70000064  # bank 0; bank N has this number plus N
SHT_CUDA_UFT_ENTRY = 0x70000011
SHT_CUDA_UDT_ENTRY = 0x70000014
SHT_CUDA_CONSTANT_USER = 0x7000007C
SHT_CUDA_CONSTANT_PIC = 0x7000007D
SHT_CUDA_MERC_RELA = 0x70000082
SHT_CUDA_MERC_INFO = 0x70000083
SHT_CUDA_CONSTANT_OPTIMIZER = 0x70000084
SHT_CUDA_MERC_SYMTAB = 0x70000085
SHT_CUDA_COMPAT = 0x70000086
SHT_CUDA_MERC_RESOLVED_RELA = 0x70000088
SHT_CUDA_MERC_CALLGRAPH = 0x7000008A
SHT_CUDA_MERC_PROTOTYPE = 0x7000008B
# Types of sections that have no bytes in the file.
NO_BYTES = frozenset(
    {SHT_NOBITS, SHT_CUDA_GLOBAL, SHT_CUDA_LOCAL, SHT_CUDA_SHARED, SHT_CUDA_RESERVED_SHARED}
)

SECTION_TYPES = {
    SHT_NULL: "NULL",
    SHT_PROGBITS: "PROGBITS",
    SHT_SYMTAB: "SYMTAB",
    SHT_STRTAB: "STRTAB",
    SHT_RELA: "RELA",
    SHT_NOTE: "NOTE",
    SHT_NOBITS: "NOBITS",
    SHT_REL: "REL",
    SHT_SYMTAB_SHNDX: "SYMTAB_SHNDX",
    SHT_CUDA_INFO: "CUDA_INFO",
    SHT_CUDA_CALLGRAPH: "CUDA_CALLGRAPH",
    SHT_CUDA_PROTOTYPE: "CUDA_PROTOTYPE",
    SHT_CUDA_RESOLVED_RELA: "CUDA_RESOLVED_RELA",
    0x70000004: "CUDA_METADATA",
    0x70000006: "CUDA_CONSTANT",
    SHT_CUDA_GLOBAL: "CUDA_GLOBAL",
    SHT_CUDA_GLOBAL_INIT: "CUDA_GLOBAL_INIT",
    SHT_CUDA_LOCAL: "CUDA_LOCAL",
    SHT_CUDA_SHARED: "CUDA_SHARED",
    SHT_CUDA_RELOCINFO: "CUDA_RELOCINFO",
    0x7000000C: "CUDA_MERCURY",
    0x7000000D: "CUDA_MERCURY_SASS_MAP",
    0x7000000E: "CUDA_UFT",
    0x70000010: "CUDA_UIDX",
    SHT_CUDA_UFT_ENTRY: "CUDA_UFT_ENTRY",
    0x70000012: "CUDA_UDT",
    SHT_CUDA_UDT_ENTRY: "CUDA_UDT_ENTRY",
    SHT_CUDA_RESERVED_SHARED: "CUDA_RESERVED_SHARED",
    SHT_CUDA_CAPMERC: "CUDA_CAPMERC",
    **{SHT_CUDA_CONSTANT_B0 + bank: f"CUDA_CONSTANT_B{bank}" for bank in range(8)},
    0x70000078: "CUDA_MERCURY_CONSTANT_PARAMS",
    0x70000079: "CUDA_MERCURY_CONSTANT_IMGHDR",
    0x7000007A: "CUDA_MERCURY_CONSTANT_DRIVER",
    0x7000007B: "CUDA_MERCURY_CONSTANT_OPT",
    SHT_CUDA_CONSTANT_USER: "CUDA_MERCURY_CONSTANT_USER",
    SHT_CUDA_CONSTANT_PIC: "CUDA_MERCURY_CONSTANT_PIC",
    0x7000007E: "CUDA_MERCURY_CONSTANT_TOOLS",
    SHT_CUDA_MERC_RELA: "CUDA_MERCURY_RELA",
    SHT_CUDA_MERC_INFO: "CUDA_MERCURY_INFO",
    SHT_CUDA_CONSTANT_OPTIMIZER: "CUDA_MERCURY_CONSTANT_OPT",
    SHT_CUDA_MERC_SYMTAB: "CUDA_MERCURY_SYMTAB",
    SHT_CUDA_COMPAT: "CUDA_COMPAT_INFO",
    0x70000087: "CUDA_EMBEDDED_HOST",
    SHT_CUDA_MERC_RESOLVED_RELA: "CUDA_MERCURY_RESOLVED_RELA",
    0x70000089: "CUDA_METADATA_TRACE_MARK",
    SHT_CUDA_MERC_CALLGRAPH: "CUDA_MERCURY_CALLGRAPH",
    SHT_CUDA_MERC_PROTOTYPE: "CUDA_MERCURY_PROTOTYPE",
}

SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR, SHF_INFO_LINK = 1, 2, 4, 0x40
NT_CUINFO, NT_TKINFO = 1000, 2000  # types of notes about the toolkit
SHF_CUINFO, SHF_TKINFO = 0x1000000, 0x2000000
# Bits of sh_flags with the number of barriers of a function, in objects of CUDA 12 before sm_100.
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
SHN_LORESERVE = 0xFF00  # from here on, numbers have other meanings than a section
SPECIAL_SECTIONS = {SHN_UNDEF: "UNDEF", SHN_ABS: "ABS", SHN_COMMON: "COMMON"}

STB_LOCAL, STB_GLOBAL, STB_WEAK = 0, 1, 2
BINDINGS = {STB_LOCAL: "LOCAL", STB_GLOBAL: "GLOBAL", STB_WEAK: "WEAK"}
STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_SECTION, STT_CUDA_OBJECT = 0, 1, 2, 3, 13
STT_IMAGES = (10, 11, 12)  # references to textures, samplers and surfaces, which PTX declares
SYMBOL_TYPES = {
    STT_NOTYPE: "NOTYPE",
    STT_OBJECT: "OBJECT",
    STT_FUNC: "FUNC",
    STT_SECTION: "SECTION",
    4: "FILE",
    10: "CUDA_TEXTURE",
    11: "CUDA_SAMPLER",
    12: "CUDA_SURFACE",
    STT_CUDA_OBJECT: "CUDA_OBJECT",
}
# Bits of st_other, as CUDA uses them: __managed__ variables, kernels, the state space.
STO_MANAGED, STO_ENTRY, STO_SPACE = 0x04, 0x10, 0xE0
# Values of the bits in STO_SPACE.
STO_GLOBAL, STO_SHARED, STO_CONSTANT = 0x20, 0x40, 0x80
STATE_SPACES = {
    STO_GLOBAL: "GLOBAL",
    STO_SHARED: "SHARED",
    0x60: "LOCAL",
    STO_CONSTANT: "CONSTANT",
    0xA0: "RESERVED_SHARED",
}
STV_DEFAULT, STV_INTERNAL, STV_HIDDEN = 0, 1, 2  # bits 0 and 1 of st_other
VISIBILITIES = ("DEFAULT", "INTERNAL", "HIDDEN", "PROTECTED")  # by these bits


def round_up(value: int, align: int) -> int:
    """Return the least multiple of `align` that is not below `value`; 0 aligns like 1."""
    return -(-value // max(align, 1)) * max(align, 1)


def section_counts(shnum: int, shstrndx: int, first: tuple[int, ...]) -> tuple[int, int]:
    """Return the number of sections, and the number of the section with their names.

    `shnum` and `shstrndx` are fields of the ELF header. If a number is 0xff00 or more, it is not
    there but in the first section header, which is `first`, as SHDR unpacks it (gABI, 4-7).
    """
    _, _, _, _, _, size, link, *_ = first
    return shnum or size, link if shstrndx == SHN_XINDEX else shstrndx


def names_of_other(other: int, symbol_type: int) -> list[str]:
    """Return the names of the bits of st_other that say the kind of symbol and the state space."""
    names = []
    is_function = symbol_type == STT_FUNC
    if other & STO_MANAGED:
        names.append("UNIFIED_FUNC" if is_function else "MANAGED")
    if other & 0x08:
        names.append("OBSCURE")
    if other & STO_ENTRY:
        names.append("ENTRY" if is_function else "UNIFIED_OBJECT")
    space = other & STO_SPACE
    if space:
        names.append(STATE_SPACES.get(space, f"space {space >> 5}"))
    return names


def flag_letters(flags: int) -> str:
    """Return the letters for the bits of sh_flags, and a number for bits without a letter."""
    letters = "".join(letter for bit, letter in SECTION_FLAGS.items() if flags & bit)
    others = flags & ~sum(SECTION_FLAGS)
    return " ".join(part for part in (letters, f"{others:#x}" if others else "") if part)
