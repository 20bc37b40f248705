"""What a section is: one table of all kinds, from which the kernels' header is made.

`pylink.facts.header` writes the rows into C when native code is built. nvlink tells sections by
type and flags and looks at names where a type has several kinds (docs/format-notes.md, "Names of
sections"); so does the reader.
"""

from __future__ import annotations

from dataclasses import dataclass

from pylink.facts import elf
from pylink.facts.releases import TRAIT_MERC_CALLS
from pylink.facts.sectionkinds import (
    CALLGRAPH,
    CAPMERC,
    COMPAT,
    CONSTANT,
    CONSTANT0,
    CONSTANT_FUNC,
    CUINFO,
    DEBUG,
    DEBUG_SHARED,
    GLOBAL,
    GLOBAL_INIT,
    INFO,
    INFO_FUNC,
    LOCAL,
    MERC_CALLGRAPH,
    MERC_CONSTANT,
    MERC_CONSTANT_FUNC,
    MERC_DEBUG,
    MERC_GLOBAL_INIT,
    MERC_INFO,
    MERC_INFO_FUNC,
    MERC_PROTOTYPE,
    MERC_RELA,
    MERC_SYMTAB,
    MERC_SYMTAB_SHNDX,
    MERC_SYSTEM_SHARED,
    NULL,
    OTHER,
    PROTOTYPE,
    REL_ACTION,
    RELOC,
    RESOLVED_RELA,
    SHARED,
    SHSTRTAB,
    STRTAB,
    SYMTAB,
    SYMTAB_SHNDX,
    SYSTEM_SHARED,
    TEXT,
    TKINFO,
)

# Debug data that the link knows how to join: those of DWARF 2 to 5 and NVIDIA's own.
DEBUG_NAMES = """
    .debug_abbrev .debug_addr .debug_aranges .debug_frame .debug_info .debug_line .debug_line_str
    .debug_loc .debug_loclists .debug_macinfo .debug_macro .debug_names .debug_pubnames
    .debug_pubtypes .debug_ranges .debug_rnglists .debug_str .debug_str_offsets .debug_types
    .nv_debug_info_ptx .nv_debug_info_reg_sass .nv_debug_info_reg_type .nv_debug_line_sass
    .nv_debug_ptx_txt .nv_debug_ptx_txt.
"""

# When a section may have another name than those of its kind. nvlink then links all the same.
FREE_NEVER = 0
FREE_PLAIN = 1  # before sm_100; from there on the finalizer goes by name
FREE_ALWAYS = 2

# What sections of the same kind become in the output.
PLACE_APART = 0  # made by the link, or one for each function
PLACE_JOINED = 1  # one for all inputs' sections of that name

# Order of the parts of the output file.
(
    RANK_TABLES,
    RANK_OTHER,  # debug data, and what no rule names
    RANK_NOTES,
    RANK_INFO,
    RANK_CALLS,
    RANK_RELOCATIONS,
    RANK_CONSTANTS,
    RANK_TEXT,
    RANK_DATA,
    RANK_NOBITS,  # sections without bytes in the file
    RANK_PARAMETERS,
    RANK_MERCURY,  # capsules; mercury starts here
    RANK_MERC_DEBUG,
    RANK_MERC_INFO,
    RANK_MERC_INFO_FUNC,
    RANK_MERC_CALLS,
    RANK_MERC_RELA,
    RANK_MERC_CONSTANT,
    RANK_MERC_DATA,
    RANK_MERC_LATE,
    RANK_MERC_SYMTAB,
) = range(21)
# The same from sm_100 on for releases with TRAIT_LEAN_NAMES: mercury stands as what is plain.
LEAN_RANKS = (
    *range(RANK_MERCURY),
    RANK_MERC_SYMTAB,
    RANK_MERC_DEBUG,
    RANK_MERC_INFO,
    RANK_MERC_INFO_FUNC,
    RANK_MERC_CALLS,
    RANK_MERC_RELA,
    RANK_MERC_CONSTANT,
    RANK_MERCURY,
    RANK_MERC_DATA,
    RANK_MERC_LATE,
)

# When a section that was created is omitted from the output; its name stays in the string tables.
OMIT_NEVER = 0
OMIT_WITHOUT_RECORDS = 1
OMIT_WITHOUT_ENTRIES = 2
OMIT_WITHOUT_PROTOTYPES = 3
OMIT_UNUSED = 4

# What sh_link and sh_info of the output hold.
HEAD_NOTHING = 0
HEAD_STRTAB = 1
HEAD_SYMTAB = 2
HEAD_MERC_SYMTAB = 3
HEAD_TKINFO = 4
HEAD_TEXT = 5  # the function's code
HEAD_CAPSULE = 6  # the function's capsule
HEAD_FUNCTION = 7  # the function's symbol
HEAD_TARGET = 8  # what the relocations patch
HEAD_COMPAT = 9
HEAD_LOCALS = 10  # the number of the first global symbol

# What gives an output section its size; sections of inputs and blobs have one already.
SIZE_GIVEN = 0
SIZE_ENTRIES = 1
SIZE_SYMBOLS = 2
SIZE_INDICES = 3
SIZE_STRINGS = 4

# What symbols in it stand for (EntityKind of rows.pxd).
HOLDS_GLOBALS = 1
HOLDS_CONSTANTS = 2
HOLDS_SHARED = 3
HOLDS_NOTHING = 7
HOLDS_SYSTEM_SHARED = 8


# What sections of several kinds are alike, and what kernels ask of one kind in several places.
IS_CODE = 1  # instructions of a function; its sections name them
IS_CAPSULE = 2  # their mercury form
IS_DEBUG = 4  # debug data, plain or mercury
IS_ENTRIES = 8  # relocations that stay, plain or mercury
IS_RECORDS = 16  # attributes, plain or mercury
IS_CALLS = 32  # pairs of the call graph and of prototypes
IS_PARAMETERS = 64  # the bank of a kernel's parameters, which from sm_100 on comes last of all
IS_LITERALS = 128  # a bank of a function's literals and jump tables, plain or mercury
IS_VARIABLES = 256  # constants or initialized data of all files, plain or mercury
IS_KERNEL_SHARED = 512  # shared variables of one kernel
IS_COMMON_SHARED = 1024  # those of all

# Constant banks of which nvlink knows more than the number.
POOL_BANK = 2  # IS_LITERALS, as a rule
USER_BANK = 3  # constants of all files
PIC_BANK = 4  # addresses in code that is independent of its position


@dataclass(frozen=True, slots=True)
class Kind:
    """One row. What the link makes itself has the type and flags of the row."""

    number: int
    called: str  # `names`, apart by blanks
    # sh_type, one for each name or one for all, the first bank's where names have one.
    sh_types: tuple[int, ...]
    flags: int = 0  # sh_flags, of which
    mask: int = elf.SHF_MERCURY | elf.SHF_INFO_LINK  # these bits tell the kind
    free: int = FREE_NEVER  # when they may be called otherwise
    owner: int = NULL  # the kind that sh_info names in sections of functions
    patched: bool = False  # whether relocations can be for it
    place: int = PLACE_APART  # what the output makes of it
    rank: int | tuple[int, int, int] = RANK_OTHER  # `ranks`, or one for all families
    omit: int = OMIT_NEVER  # when the output lacks it
    link: int = HEAD_NOTHING  # what the output's header holds there
    info: int = HEAD_NOTHING
    program: int = 0  # sh_type in executables, 0 for that of the input
    size: int = SIZE_GIVEN  # what gives its size
    # The kind of its mercury form. Inputs have brought those with `brought`; the link makes the
    # others, if the release has the bits of `trait`.
    twin: int = NULL
    brought: bool = False
    holds: int = HOLDS_NOTHING  # what symbols in it are
    merc: str = ".nv.merc"  # how names of its mercury form begin
    align: int = 0  # of what the link makes; 0 for that of the plain section
    entsize: int = 0
    trait: int = 0
    what: int = 0  # IS_ bits
    # From sm_100 on the name until the second program renames it, in place of the one with a bank,
    # where that is `first_bank` or, with 0, any. PIC_BANK is the one after `first_bank`, and has
    # the name that `tables.kinds` knows. Types of mercury sections count from `first_bank` on.
    first: str = ""
    first_bank: int = 0

    @property
    def names(self) -> tuple[bytes, ...]:
        """The names, or, where they end in a dot, how they begin; `{bank}` is a number."""
        return tuple(self.called.encode().split())

    @property
    def types(self) -> tuple[int, ...]:
        """sh_type, one for each name; of a kind without names one alone."""
        several = len(self.sh_types) > 1
        return self.sh_types if several else self.sh_types * max(len(self.names), 1)

    @property
    def ranks(self) -> tuple[int, int, int]:
        """The places in the output of families A, B and C."""
        return (self.rank,) * 3 if isinstance(self.rank, int) else self.rank

    @property
    def given(self) -> bool:
        """Whether inputs have bytes for it."""
        return self.number != NULL and self.types[0] not in elf.NO_BYTES

    @property
    def nobits(self) -> bool:
        """Whether it takes memory but no bytes of the output file."""
        return not self.given and not self.flags & elf.SHF_MERCURY and self.number != NULL

    @property
    def exact(self) -> bool:
        """Whether all its sections have one name."""
        return len(self.names) == 1 and not self.names[0].endswith(b".") and not self.banked

    @property
    def banked(self) -> bool:
        """Whether names and types count constant banks."""
        return any(b"{bank}" in name for name in self.names)

    @property
    def title(self) -> str:
        """The name of its sections, with `*` for what differs: `.text.*`."""
        if not self.names:
            return "null" if self.number == NULL else "other"
        first = self.names[0].decode().replace("{bank}", "*")
        if len(self.names) > 1:
            first = first[: max(first.rfind("."), first.rfind("_")) + 1]
        return first + "*" * first.endswith((".", "_"))

    @property
    def shrinks(self) -> int:
        """Bytes that the name loses when it becomes the final one, 0 for one that is final."""
        return len(self.first) and len(self.first) - self.stem - 1

    @property
    def stem(self) -> int:
        """Bytes of the name before that of a function, without the number of a bank."""
        return len(self.names[0].replace(b"{bank}", b"")) if self.names else 0


def kinds() -> tuple[Kind, ...]:
    """All kinds, by number. The first row that fits a section in type, flags and name is its."""
    mercury, link = elf.SHF_MERCURY, elf.SHF_INFO_LINK
    read, write, code = elf.SHF_ALLOC, elf.SHF_ALLOC | elf.SHF_WRITE, elf.SHF_EXECINSTR
    program = mercury | read | code
    notes = mercury | elf.SHF_TKINFO | elf.SHF_CUINFO
    # A row is to be seen at once.
    # fmt: off
    rows = (
        Kind(NULL, "", (elf.SHT_NULL,), mask=0, free=FREE_ALWAYS),
        Kind(SHSTRTAB, ".shstrtab", (elf.SHT_STRTAB,), rank=RANK_TABLES, align=1),
        Kind(STRTAB, ".strtab", (elf.SHT_STRTAB,), free=FREE_ALWAYS, rank=RANK_TABLES,
             size=SIZE_STRINGS, align=1),
        Kind(SYMTAB, ".symtab", (elf.SHT_SYMTAB,), free=FREE_ALWAYS, rank=RANK_TABLES,
             link=HEAD_STRTAB, info=HEAD_LOCALS, size=SIZE_SYMBOLS, twin=MERC_SYMTAB, align=8,
             entsize=24),
        Kind(SYMTAB_SHNDX, ".symtab_shndx", (elf.SHT_SYMTAB_SHNDX,), free=FREE_ALWAYS,
             rank=RANK_TABLES, link=HEAD_SYMTAB, size=SIZE_INDICES, twin=MERC_SYMTAB_SHNDX, align=4,
             entsize=4),
        Kind(DEBUG, DEBUG_NAMES, (elf.SHT_PROGBITS,), mask=program, patched=True,
             place=PLACE_JOINED, twin=MERC_DEBUG, what=IS_DEBUG),
        Kind(TKINFO, ".note.nv.tkinfo", (elf.SHT_NOTE,), flags=elf.SHF_TKINFO, mask=notes,
             rank=RANK_NOTES, align=4),
        Kind(CUINFO, ".note.nv.cuinfo", (elf.SHT_NOTE,), flags=elf.SHF_CUINFO | link, mask=notes,
             free=FREE_ALWAYS, rank=RANK_NOTES, link=HEAD_TKINFO, info=HEAD_COMPAT, align=4),
        Kind(INFO, ".nv.info", (elf.SHT_CUDA_INFO,), free=FREE_ALWAYS, rank=RANK_INFO,
             omit=OMIT_WITHOUT_RECORDS, link=HEAD_SYMTAB, twin=MERC_INFO, align=4, what=IS_RECORDS),
        Kind(COMPAT, ".nv.compat", (elf.SHT_CUDA_COMPAT,), free=FREE_ALWAYS, rank=RANK_INFO,
             align=4),
        Kind(INFO_FUNC, ".nv.info.", (elf.SHT_CUDA_INFO,), flags=link, free=FREE_PLAIN, owner=TEXT,
             rank=RANK_INFO, link=HEAD_SYMTAB, info=HEAD_TEXT, twin=MERC_INFO_FUNC, align=4,
             what=IS_RECORDS),
        Kind(CALLGRAPH, ".nv.callgraph", (elf.SHT_CUDA_CALLGRAPH,), free=FREE_ALWAYS,
             rank=RANK_CALLS, link=HEAD_SYMTAB, twin=MERC_CALLGRAPH, align=4, entsize=8,
             what=IS_CALLS),
        Kind(PROTOTYPE, ".nv.prototype", (elf.SHT_CUDA_PROTOTYPE,), free=FREE_ALWAYS,
             rank=RANK_CALLS, omit=OMIT_WITHOUT_PROTOTYPES, link=HEAD_SYMTAB, twin=MERC_PROTOTYPE,
             align=4, entsize=8, what=IS_CALLS),
        Kind(REL_ACTION, ".nv.rel.action", (elf.SHT_CUDA_RELOCINFO,), rank=RANK_CALLS, align=8,
             entsize=8),
        Kind(RELOC, ".rela. .rel.", (elf.SHT_RELA, elf.SHT_REL), flags=link, mask=mercury,
             free=FREE_PLAIN, rank=RANK_RELOCATIONS, omit=OMIT_WITHOUT_ENTRIES, link=HEAD_SYMTAB,
             info=HEAD_TARGET, size=SIZE_ENTRIES, twin=MERC_RELA, align=8, entsize=24,
             what=IS_ENTRIES),
        Kind(RESOLVED_RELA, ".nv.resolvedrela.", (elf.SHT_CUDA_RESOLVED_RELA,), flags=link,
             rank=RANK_RELOCATIONS, omit=OMIT_WITHOUT_ENTRIES, link=HEAD_SYMTAB, info=HEAD_TARGET,
             size=SIZE_ENTRIES, align=8, entsize=24),
        Kind(CONSTANT, ".nv.constant{bank}", (elf.SHT_CUDA_CONSTANT_B0,), flags=read, patched=True,
             place=PLACE_JOINED, rank=RANK_CONSTANTS, program=elf.SHT_PROGBITS, twin=MERC_CONSTANT,
             holds=HOLDS_CONSTANTS, what=IS_VARIABLES, first=".nv.constant.user",
             first_bank=USER_BANK),
        # `mask` without SHF_INFO_LINK: objects before 12.1, and what was linked of them, lack it.
        Kind(CONSTANT0, ".nv.constant0.", (elf.SHT_CUDA_CONSTANT_B0,), flags=read | link,
             mask=mercury, owner=TEXT, patched=True,
             rank=(RANK_CONSTANTS, RANK_CONSTANTS, RANK_PARAMETERS), info=HEAD_TEXT,
             program=elf.SHT_PROGBITS, holds=HOLDS_CONSTANTS, what=IS_PARAMETERS),
        Kind(CONSTANT_FUNC, ".nv.constant{bank}.", (elf.SHT_CUDA_CONSTANT_B0,), flags=read | link,
             owner=TEXT, patched=True, rank=RANK_CONSTANTS, info=HEAD_TEXT,
             program=elf.SHT_PROGBITS, twin=MERC_CONSTANT_FUNC, holds=HOLDS_CONSTANTS,
             what=IS_LITERALS, first=".nv.constant.optimizer."),
        Kind(TEXT, ".text.", (elf.SHT_PROGBITS,), flags=read | code, mask=program, patched=True,
             rank=RANK_TEXT, link=HEAD_SYMTAB, info=HEAD_FUNCTION, twin=CAPMERC, align=128,
             what=IS_CODE),
        Kind(GLOBAL_INIT, ".nv.global.init", (elf.SHT_CUDA_GLOBAL_INIT,), flags=write, patched=True,
             place=PLACE_JOINED, rank=RANK_DATA, program=elf.SHT_PROGBITS, twin=MERC_GLOBAL_INIT,
             holds=HOLDS_GLOBALS, what=IS_VARIABLES),
        Kind(GLOBAL, ".nv.global", (elf.SHT_CUDA_GLOBAL,), flags=write, place=PLACE_JOINED,
             rank=RANK_NOBITS, program=elf.SHT_NOBITS, holds=HOLDS_GLOBALS),
        Kind(SHARED, ".nv.shared.", (elf.SHT_CUDA_SHARED,), flags=write | link, owner=TEXT,
             rank=RANK_NOBITS, omit=OMIT_UNUSED, info=HEAD_TEXT, program=elf.SHT_NOBITS, align=1,
             holds=HOLDS_SHARED, what=IS_KERNEL_SHARED),
        Kind(DEBUG_SHARED, ".nv_debug.shared", (elf.SHT_CUDA_SHARED,), flags=write,
             free=FREE_ALWAYS, rank=RANK_NOBITS, omit=OMIT_UNUSED, program=elf.SHT_NOBITS,
             holds=HOLDS_SHARED, what=IS_COMMON_SHARED),
        Kind(LOCAL, ".nv.local.", (elf.SHT_CUDA_LOCAL,), flags=write, mask=mercury,
             place=PLACE_JOINED, rank=RANK_NOBITS, program=elf.SHT_NOBITS),
        Kind(SYSTEM_SHARED, ".nv.shared.reserved.0", (elf.SHT_CUDA_RESERVED_SHARED,), flags=write,
             place=PLACE_JOINED, rank=RANK_NOBITS, program=elf.SHT_NOBITS, twin=MERC_SYSTEM_SHARED,
             holds=HOLDS_SYSTEM_SHARED),
        Kind(CAPMERC, ".nv.capmerc.text.", (elf.SHT_CUDA_CAPMERC,), flags=mercury, free=FREE_ALWAYS,
             patched=True, rank=RANK_MERCURY, link=HEAD_MERC_SYMTAB, info=HEAD_FUNCTION,
             merc=".nv.capmerc", align=16, what=IS_CAPSULE),
        Kind(MERC_DEBUG, " ".join(f".nv.merc{name}" for name in DEBUG_NAMES.split()),
             (elf.SHT_PROGBITS,), flags=mercury, mask=program, patched=True, rank=RANK_MERC_DEBUG,
             brought=True, what=IS_DEBUG),
        Kind(MERC_INFO, ".nv.merc.nv.info", (elf.SHT_CUDA_MERC_INFO,), flags=mercury,
             free=FREE_ALWAYS, rank=RANK_MERC_INFO, omit=OMIT_WITHOUT_RECORDS,
             link=HEAD_MERC_SYMTAB, align=4, what=IS_RECORDS),
        Kind(MERC_INFO_FUNC, ".nv.merc.nv.info.", (elf.SHT_CUDA_MERC_INFO,), flags=mercury | link,
             owner=CAPMERC, rank=RANK_MERC_INFO_FUNC, link=HEAD_MERC_SYMTAB, info=HEAD_CAPSULE,
             align=4, what=IS_RECORDS),
        Kind(MERC_CALLGRAPH, ".nv.merc.nv.callgraph", (elf.SHT_CUDA_MERC_CALLGRAPH,), flags=mercury,
             free=FREE_ALWAYS, rank=RANK_MERC_CALLS, link=HEAD_MERC_SYMTAB, align=4, entsize=8,
             trait=TRAIT_MERC_CALLS),
        Kind(MERC_PROTOTYPE, ".nv.merc.nv.prototype", (elf.SHT_CUDA_MERC_PROTOTYPE,), flags=mercury,
             free=FREE_ALWAYS, rank=RANK_MERC_CALLS, omit=OMIT_WITHOUT_PROTOTYPES,
             link=HEAD_MERC_SYMTAB, align=4, entsize=8, trait=TRAIT_MERC_CALLS),
        Kind(MERC_RELA, ".nv.merc.rela.", (elf.SHT_CUDA_MERC_RELA,), flags=mercury | link,
             mask=mercury, rank=RANK_MERC_RELA, omit=OMIT_WITHOUT_ENTRIES, link=HEAD_MERC_SYMTAB,
             info=HEAD_TARGET, size=SIZE_ENTRIES, align=8, entsize=24, brought=True,
             what=IS_ENTRIES),
        # In the order of banks.
        Kind(MERC_CONSTANT, ".nv.merc.nv.constant.user .nv.merc.nv.constant.pic",
             (elf.SHT_CUDA_CONSTANT_USER, elf.SHT_CUDA_CONSTANT_PIC), flags=mercury | read,
             patched=True, rank=RANK_MERC_CONSTANT, what=IS_VARIABLES, first_bank=USER_BANK),
        Kind(MERC_GLOBAL_INIT, ".nv.merc.nv.global.init", (elf.SHT_CUDA_GLOBAL_INIT,),
             flags=mercury | write, patched=True, rank=RANK_MERC_DATA, what=IS_VARIABLES),
        Kind(MERC_SYMTAB, ".nv.merc.symtab", (elf.SHT_CUDA_MERC_SYMTAB,), flags=mercury,
             free=FREE_ALWAYS, rank=RANK_MERC_SYMTAB, link=HEAD_STRTAB, info=HEAD_LOCALS,
             size=SIZE_SYMBOLS, align=8, entsize=24),
        Kind(MERC_CONSTANT_FUNC, ".nv.merc.nv.constant.optimizer.",
             (elf.SHT_CUDA_CONSTANT_OPTIMIZER,), flags=mercury | read | link, owner=CAPMERC,
             patched=True, rank=RANK_MERC_CONSTANT, info=HEAD_CAPSULE, align=4, brought=True,
             what=IS_LITERALS),
        Kind(MERC_SYSTEM_SHARED, ".nv.merc.nv.shared.reserved.0", (elf.SHT_CUDA_RESERVED_SHARED,),
             flags=mercury | write, rank=RANK_MERC_LATE),
        Kind(MERC_SYMTAB_SHNDX, ".nv.merc.symtab_shndx", (elf.SHT_SYMTAB_SHNDX,), flags=mercury,
             rank=RANK_MERCURY, link=HEAD_MERC_SYMTAB, size=SIZE_INDICES, align=4, entsize=4),
        # Data that no tool of CUDA names and no program addresses.
        Kind(OTHER, "", (elf.SHT_PROGBITS,), mask=program, free=FREE_PLAIN, place=PLACE_JOINED),
    )
    # fmt: on
    return tuple(sorted(rows, key=lambda row: row.number))
