"""One table of all kinds of sections, from which `pylink.facts.header` makes tables of C.

Like nvlink, the reader recognizes sections by type and flags, and by name if a type has several
kinds (docs/format-notes.md, "Names of sections").
"""

from __future__ import annotations

from dataclasses import dataclass

from pylink.facts import elf
from pylink.facts import sectionkinds as kind
from pylink.facts.releases import TRAIT_MERC_CALLS
from pylink.facts.target import CONSTANT_BANK, LITERAL_BANK

# Debug data that a link can join: DWARF 2 to 5 and NVIDIA's own.
DEBUG_NAMES = """
    .debug_abbrev .debug_addr .debug_aranges .debug_frame .debug_info .debug_line .debug_line_str
    .debug_loc .debug_loclists .debug_macinfo .debug_macro .debug_names .debug_pubnames
    .debug_pubtypes .debug_ranges .debug_rnglists .debug_str .debug_str_offsets .debug_types
    .nv_debug_info_ptx .nv_debug_info_reg_sass .nv_debug_info_reg_type .nv_debug_line_sass
    .nv_debug_ptx_txt .nv_debug_ptx_txt.
"""

# Values of `Kind.free`: when a section of the kind may have another name than the kind's, since
# nvlink links such sections, too.
FREE_NEVER = 0
FREE_PLAIN = 1  # before sm_100; from then on nvlink's finalizer recognizes sections by name
FREE_ALWAYS = 2

# Values of `Kind.place`: which output sections a kind has.
PLACE_APART = 0  # created by the link, or one for each function
PLACE_JOINED = 1  # one for each name, of the sections of all inputs

# Values of `Kind.ranks`: the parts of the output file in their order.
(
    RANK_TABLES,
    RANK_OTHER,  # debug data, and sections that no rule names
    RANK_NOTES,
    RANK_INFO,
    RANK_CALLS,
    RANK_RELOCATIONS,
    RANK_CONSTANTS,
    RANK_TEXT,
    RANK_DATA,
    RANK_NOBITS,  # sections without bytes in the file
    RANK_PARAMETERS,
    RANK_MERCURY,  # capsules (mercury code); this and all parts below are of mercury sections
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
# Order from sm_100 on for releases with TRAIT_LEAN_NAMES: mercury parts in the order of plain ones.
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

# Values of `Kind.omit`: when the output omits a section that the link created. The name of the
# section stays in the string tables, except from sm_100 on in releases with TRAIT_LEAN_NAMES.
OMIT_NEVER = 0
OMIT_WITHOUT_RECORDS = 1  # it has no attribute records
OMIT_WITHOUT_ENTRIES = 2  # it has no relocations
OMIT_WITHOUT_PROTOTYPES = 3  # it has no prototypes
OMIT_UNUSED = 4  # no kernel uses its shared memory

# Values of `Kind.link` and `Kind.info`: the section or symbol whose number is sh_link or sh_info in
# the output.
HEAD_NOTHING = 0
HEAD_STRTAB = 1  # .strtab
HEAD_SYMTAB = 2  # .symtab
HEAD_MERC_SYMTAB = 3  # .nv.merc.symtab
HEAD_TKINFO = 4  # .note.nv.tkinfo
HEAD_TEXT = 5  # the function's code
HEAD_CAPSULE = 6  # the function's capsule
HEAD_FUNCTION = 7  # the function's symbol
HEAD_TARGET = 8  # the section that the relocations patch
HEAD_COMPAT = 9  # .nv.compat
HEAD_LOCALS = 10  # the first global symbol

# Values of `Kind.size`: what the size of an output section counts.
SIZE_GIVEN = 0  # the contents from inputs, or contents that the link makes for it
SIZE_ENTRIES = 1  # relocations
SIZE_SYMBOLS = 2  # symbols
SIZE_INDICES = 3  # a section number for each symbol
SIZE_STRINGS = 4  # names

# Values of `Kind.entity_kind`: what symbols in a section of the kind are. They are numbers of
# EntityKind in rownumbers.py.
HOLDS_GLOBALS = 1
HOLDS_CONSTANTS = 2
HOLDS_SHARED = 3
HOLDS_NOTHING = 7
HOLDS_SYSTEM_SHARED = 8


# Bits of `Kind.features`: properties of kinds that native code tests in several places.
IS_CODE = 1  # instructions of a function; the function's other sections refer to it
IS_CAPSULE = 2  # the mercury form of the instructions
IS_DEBUG = 4  # debug data, plain or mercury
IS_ENTRIES = 8  # emitted relocations, plain or mercury
IS_RECORDS = 16  # attributes, plain or mercury
IS_CALLS = 32  # pairs of the call graph and of prototypes
IS_PARAMETERS = 64  # the bank of a kernel's parameters, from sm_100 on after other plain sections
IS_LITERALS = 128  # a bank of a function's literals and jump tables, plain or mercury
IS_VARIABLES = 256  # constants or initialized data of all files, plain or mercury
IS_KERNEL_SHARED = 512  # shared variables of one kernel
IS_COMMON_SHARED = 1024  # shared variables of all kernels

# Constant banks that nvlink treats specially.
POOL_BANK = LITERAL_BANK  # literals and jump tables of a function (IS_LITERALS)
USER_BANK = CONSTANT_BANK  # __constant__ variables of all files
PIC_BANK = 4  # addresses for position-independent code


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of section: how to recognize it in inputs, and what the output makes of it.

    A section that the link creates has the type and flags of its kind.
    """

    number: int
    name_list: str  # `names`, separated by blanks
    # sh_type: one for each name or one for all; for names with a bank, that of the first bank.
    sh_types: tuple[int, ...]
    flags: int = 0  # sh_flags
    mask: int = elf.SHF_MERCURY | elf.SHF_INFO_LINK  # bits of `flags` that an input must match
    free: int = FREE_NEVER  # when its sections may have other names
    owner: int = kind.NULL  # kind of a function's sections: that of the section in sh_info
    patched: bool = False  # whether relocation sections can be for its sections
    place: int = PLACE_APART  # which output sections the kind has: PLACE_
    rank: int | tuple[int, int, int] = RANK_OTHER  # one RANK_ for all families, or `ranks`
    omit: int = OMIT_NEVER  # when the output omits its sections: OMIT_
    link: int = HEAD_NOTHING  # sh_link of the output
    info: int = HEAD_NOTHING  # sh_info of the output
    program: int = 0  # sh_type in executables; 0: that of the input
    size: int = SIZE_GIVEN  # how the size of an output section is computed: SIZE_
    twin: int = kind.NULL  # the kind of its mercury form
    # True for a mercury kind whose sections come from inputs. The link creates sections of other
    # mercury kinds, if the release has the bits of the kind's `trait`.
    brought: bool = False
    entity_kind: int = HOLDS_NOTHING  # entities that symbols in its sections name: HOLDS_
    merc: str = ".nv.merc"  # prefix of the names of its mercury form
    align: int = 0  # alignment of a section that the link creates; 0: that of the plain section
    entsize: int = 0  # sh_entsize of the output, in bytes
    trait: int = 0  # TRAIT_ bits of releases, or 0: see `brought`
    features: int = 0  # IS_ bits
    # The name from sm_100 on, until the second program (the step that makes the final file from the
    # mercury file) renames the section to the name with a bank. It is for bank `first_bank` (0:
    # any); native code (`tables/kinds.pxd`) has the name for PIC_BANK. Types of mercury sections
    # count from `first_bank` on.
    first: str = ""
    first_bank: int = 0

    @property
    def names(self) -> tuple[bytes, ...]:
        """The names; one that ends in a dot is a prefix, and `{bank}` stands for a number."""
        return tuple(self.name_list.encode().split())

    @property
    def types(self) -> tuple[int, ...]:
        """sh_type, one for each name; a single one for a kind without names."""
        has_several = len(self.sh_types) > 1
        return self.sh_types if has_several else self.sh_types * max(len(self.names), 1)

    @property
    def ranks(self) -> tuple[int, int, int]:
        """The parts of the output (RANK_) for families A, B and C of architectures."""
        return (self.rank,) * 3 if isinstance(self.rank, int) else self.rank

    @property
    def has_bytes(self) -> bool:
        """Whether inputs have bytes for its sections."""
        return self.number != kind.NULL and self.types[0] not in elf.NO_BYTES

    @property
    def nobits(self) -> bool:
        """Whether its sections take memory but no bytes of the output file."""
        return not self.has_bytes and not self.flags & elf.SHF_MERCURY and self.number != kind.NULL

    @property
    def exact(self) -> bool:
        """Whether the kind has one whole name: not several, a prefix, or a name with a bank."""
        return len(self.names) == 1 and not self.names[0].endswith(b".") and not self.banked

    @property
    def banked(self) -> bool:
        """Whether names and types contain the number of a constant bank."""
        return any(b"{bank}" in name for name in self.names)

    @property
    def title(self) -> str:
        """The name of its sections, with `*` for the part that differs: `.text.*`."""
        if not self.names:
            return "null" if self.number == kind.NULL else "other"
        first = self.names[0].decode().replace("{bank}", "*")
        if len(self.names) > 1:
            first = first[: max(first.rfind("."), first.rfind("_")) + 1]
        return first + "*" * first.endswith((".", "_"))

    @property
    def bytes_shrunk(self) -> int:
        """Bytes by which the final name, with a digit for the bank, is shorter than `first`.

        It is 0 without a `first`.
        """
        return len(self.first) and len(self.first) - self.stem - 1

    @property
    def stem(self) -> int:
        """The length of the first of `names`, without `{bank}`; 0 for a kind without names."""
        return len(self.names[0].replace(b"{bank}", b"")) if self.names else 0


def kinds() -> tuple[Kind, ...]:
    """Return all kinds, by number.

    `sectionheader.sort_by_rules` has the order in which the reader compares sections with them.
    """
    mercury, link = elf.SHF_MERCURY, elf.SHF_INFO_LINK
    read, write, code = elf.SHF_ALLOC, elf.SHF_ALLOC | elf.SHF_WRITE, elf.SHF_EXECINSTR
    # Values of `mask`: what distinguishes kinds of SHT_PROGBITS, and kinds of notes.
    program = mercury | read | code
    notes = mercury | elf.SHF_TKINFO | elf.SHF_CUINFO
    # The formatter would write one argument a line, and the table would be hard to read.
    # fmt: off
    rows = (
        Kind(kind.NULL, "", (elf.SHT_NULL,), mask=0, free=FREE_ALWAYS),
        Kind(kind.SHSTRTAB, ".shstrtab", (elf.SHT_STRTAB,), rank=RANK_TABLES, align=1),
        Kind(kind.STRTAB, ".strtab", (elf.SHT_STRTAB,), free=FREE_ALWAYS, rank=RANK_TABLES,
             size=SIZE_STRINGS, align=1),
        Kind(kind.SYMTAB, ".symtab", (elf.SHT_SYMTAB,), free=FREE_ALWAYS, rank=RANK_TABLES,
             link=HEAD_STRTAB, info=HEAD_LOCALS, size=SIZE_SYMBOLS, twin=kind.MERC_SYMTAB, align=8,
             entsize=24),
        Kind(kind.SYMTAB_SHNDX, ".symtab_shndx", (elf.SHT_SYMTAB_SHNDX,), free=FREE_ALWAYS,
             rank=RANK_TABLES, link=HEAD_SYMTAB, size=SIZE_INDICES, twin=kind.MERC_SYMTAB_SHNDX,
             align=4, entsize=4),
        Kind(kind.DEBUG, DEBUG_NAMES, (elf.SHT_PROGBITS,), mask=program, patched=True,
             place=PLACE_JOINED, twin=kind.MERC_DEBUG, features=IS_DEBUG),
        Kind(kind.TKINFO, ".note.nv.tkinfo", (elf.SHT_NOTE,), flags=elf.SHF_TKINFO, mask=notes,
             rank=RANK_NOTES, align=4),
        Kind(kind.CUINFO, ".note.nv.cuinfo", (elf.SHT_NOTE,), flags=elf.SHF_CUINFO | link,
             mask=notes, free=FREE_ALWAYS, rank=RANK_NOTES, link=HEAD_TKINFO, info=HEAD_COMPAT,
             align=4),
        Kind(kind.INFO, ".nv.info", (elf.SHT_CUDA_INFO,), free=FREE_ALWAYS, rank=RANK_INFO,
             omit=OMIT_WITHOUT_RECORDS, link=HEAD_SYMTAB, twin=kind.MERC_INFO, align=4,
             features=IS_RECORDS),
        Kind(kind.COMPAT, ".nv.compat", (elf.SHT_CUDA_COMPAT,), free=FREE_ALWAYS, rank=RANK_INFO,
             align=4),
        Kind(kind.INFO_FUNC, ".nv.info.", (elf.SHT_CUDA_INFO,), flags=link, free=FREE_PLAIN,
             owner=kind.TEXT, rank=RANK_INFO, link=HEAD_SYMTAB, info=HEAD_TEXT,
             twin=kind.MERC_INFO_FUNC, align=4, features=IS_RECORDS),
        Kind(kind.CALLGRAPH, ".nv.callgraph", (elf.SHT_CUDA_CALLGRAPH,), free=FREE_ALWAYS,
             rank=RANK_CALLS, link=HEAD_SYMTAB, twin=kind.MERC_CALLGRAPH, align=4, entsize=8,
             features=IS_CALLS),
        Kind(kind.PROTOTYPE, ".nv.prototype", (elf.SHT_CUDA_PROTOTYPE,), free=FREE_ALWAYS,
             rank=RANK_CALLS, omit=OMIT_WITHOUT_PROTOTYPES, link=HEAD_SYMTAB,
             twin=kind.MERC_PROTOTYPE, align=4, entsize=8, features=IS_CALLS),
        Kind(kind.REL_ACTION, ".nv.rel.action", (elf.SHT_CUDA_RELOCINFO,), rank=RANK_CALLS, align=8,
             entsize=8),
        Kind(kind.RELOC, ".rela. .rel.", (elf.SHT_RELA, elf.SHT_REL), flags=link, mask=mercury,
             free=FREE_PLAIN, rank=RANK_RELOCATIONS, omit=OMIT_WITHOUT_ENTRIES, link=HEAD_SYMTAB,
             info=HEAD_TARGET, size=SIZE_ENTRIES, twin=kind.MERC_RELA, align=8, entsize=24,
             features=IS_ENTRIES),
        Kind(kind.RESOLVED_RELA, ".nv.resolvedrela.", (elf.SHT_CUDA_RESOLVED_RELA,), flags=link,
             rank=RANK_RELOCATIONS, omit=OMIT_WITHOUT_ENTRIES, link=HEAD_SYMTAB, info=HEAD_TARGET,
             size=SIZE_ENTRIES, align=8, entsize=24),
        Kind(kind.CONSTANT, ".nv.constant{bank}", (elf.SHT_CUDA_CONSTANT_B0,), flags=read,
             patched=True, place=PLACE_JOINED, rank=RANK_CONSTANTS, program=elf.SHT_PROGBITS,
             twin=kind.MERC_CONSTANT, entity_kind=HOLDS_CONSTANTS, features=IS_VARIABLES,
             first=".nv.constant.user", first_bank=USER_BANK),
        # `mask` without SHF_INFO_LINK: objects before 12.1, and links of them, lack that flag.
        Kind(kind.CONSTANT0, ".nv.constant0.", (elf.SHT_CUDA_CONSTANT_B0,), flags=read | link,
             mask=mercury, owner=kind.TEXT, patched=True,
             rank=(RANK_CONSTANTS, RANK_CONSTANTS, RANK_PARAMETERS), info=HEAD_TEXT,
             program=elf.SHT_PROGBITS, entity_kind=HOLDS_CONSTANTS, features=IS_PARAMETERS),
        Kind(kind.CONSTANT_FUNC, ".nv.constant{bank}.", (elf.SHT_CUDA_CONSTANT_B0,),
             flags=read | link, owner=kind.TEXT, patched=True, rank=RANK_CONSTANTS, info=HEAD_TEXT,
             program=elf.SHT_PROGBITS, twin=kind.MERC_CONSTANT_FUNC, entity_kind=HOLDS_CONSTANTS,
             features=IS_LITERALS, first=".nv.constant.optimizer."),
        Kind(kind.TEXT, ".text.", (elf.SHT_PROGBITS,), flags=read | code, mask=program,
             patched=True, rank=RANK_TEXT, link=HEAD_SYMTAB, info=HEAD_FUNCTION, twin=kind.CAPMERC,
             align=128, features=IS_CODE),
        Kind(kind.GLOBAL_INIT, ".nv.global.init", (elf.SHT_CUDA_GLOBAL_INIT,), flags=write,
             patched=True, place=PLACE_JOINED, rank=RANK_DATA, program=elf.SHT_PROGBITS,
             twin=kind.MERC_GLOBAL_INIT, entity_kind=HOLDS_GLOBALS, features=IS_VARIABLES),
        Kind(kind.GLOBAL, ".nv.global", (elf.SHT_CUDA_GLOBAL,), flags=write, place=PLACE_JOINED,
             rank=RANK_NOBITS, program=elf.SHT_NOBITS, entity_kind=HOLDS_GLOBALS),
        Kind(kind.SHARED, ".nv.shared.", (elf.SHT_CUDA_SHARED,), flags=write | link,
             owner=kind.TEXT, rank=RANK_NOBITS, omit=OMIT_UNUSED, info=HEAD_TEXT,
             program=elf.SHT_NOBITS, align=1, entity_kind=HOLDS_SHARED, features=IS_KERNEL_SHARED),
        Kind(kind.DEBUG_SHARED, ".nv_debug.shared", (elf.SHT_CUDA_SHARED,), flags=write,
             free=FREE_ALWAYS, rank=RANK_NOBITS, omit=OMIT_UNUSED, program=elf.SHT_NOBITS,
             entity_kind=HOLDS_SHARED, features=IS_COMMON_SHARED),
        Kind(kind.LOCAL, ".nv.local.", (elf.SHT_CUDA_LOCAL,), flags=write, mask=mercury,
             place=PLACE_JOINED, rank=RANK_NOBITS, program=elf.SHT_NOBITS),
        Kind(kind.SYSTEM_SHARED, ".nv.shared.reserved.0", (elf.SHT_CUDA_RESERVED_SHARED,),
             flags=write, place=PLACE_JOINED, rank=RANK_NOBITS, program=elf.SHT_NOBITS,
             twin=kind.MERC_SYSTEM_SHARED, entity_kind=HOLDS_SYSTEM_SHARED),
        Kind(kind.CAPMERC, ".nv.capmerc.text.", (elf.SHT_CUDA_CAPMERC,), flags=mercury,
             free=FREE_ALWAYS, patched=True, rank=RANK_MERCURY, link=HEAD_MERC_SYMTAB,
             info=HEAD_FUNCTION, merc=".nv.capmerc", align=16, features=IS_CAPSULE),
        Kind(kind.MERC_DEBUG, " ".join(f".nv.merc{name}" for name in DEBUG_NAMES.split()),
             (elf.SHT_PROGBITS,), flags=mercury, mask=program, patched=True, rank=RANK_MERC_DEBUG,
             brought=True, features=IS_DEBUG),
        Kind(kind.MERC_INFO, ".nv.merc.nv.info", (elf.SHT_CUDA_MERC_INFO,), flags=mercury,
             free=FREE_ALWAYS, rank=RANK_MERC_INFO, omit=OMIT_WITHOUT_RECORDS,
             link=HEAD_MERC_SYMTAB, align=4, features=IS_RECORDS),
        Kind(kind.MERC_INFO_FUNC, ".nv.merc.nv.info.", (elf.SHT_CUDA_MERC_INFO,),
             flags=mercury | link, owner=kind.CAPMERC, rank=RANK_MERC_INFO_FUNC,
             link=HEAD_MERC_SYMTAB, info=HEAD_CAPSULE, align=4, features=IS_RECORDS),
        Kind(kind.MERC_CALLGRAPH, ".nv.merc.nv.callgraph", (elf.SHT_CUDA_MERC_CALLGRAPH,),
             flags=mercury, free=FREE_ALWAYS, rank=RANK_MERC_CALLS, link=HEAD_MERC_SYMTAB, align=4,
             entsize=8, trait=TRAIT_MERC_CALLS),
        Kind(kind.MERC_PROTOTYPE, ".nv.merc.nv.prototype", (elf.SHT_CUDA_MERC_PROTOTYPE,),
             flags=mercury, free=FREE_ALWAYS, rank=RANK_MERC_CALLS, omit=OMIT_WITHOUT_PROTOTYPES,
             link=HEAD_MERC_SYMTAB, align=4, entsize=8, trait=TRAIT_MERC_CALLS),
        Kind(kind.MERC_RELA, ".nv.merc.rela.", (elf.SHT_CUDA_MERC_RELA,), flags=mercury | link,
             mask=mercury, rank=RANK_MERC_RELA, omit=OMIT_WITHOUT_ENTRIES, link=HEAD_MERC_SYMTAB,
             info=HEAD_TARGET, size=SIZE_ENTRIES, align=8, entsize=24, brought=True,
             features=IS_ENTRIES),
        # Names and types are in the order of banks: USER_BANK, then PIC_BANK.
        Kind(kind.MERC_CONSTANT, ".nv.merc.nv.constant.user .nv.merc.nv.constant.pic",
             (elf.SHT_CUDA_CONSTANT_USER, elf.SHT_CUDA_CONSTANT_PIC), flags=mercury | read,
             patched=True, rank=RANK_MERC_CONSTANT, features=IS_VARIABLES, first_bank=USER_BANK),
        Kind(kind.MERC_GLOBAL_INIT, ".nv.merc.nv.global.init", (elf.SHT_CUDA_GLOBAL_INIT,),
             flags=mercury | write, patched=True, rank=RANK_MERC_DATA, features=IS_VARIABLES),
        Kind(kind.MERC_SYMTAB, ".nv.merc.symtab", (elf.SHT_CUDA_MERC_SYMTAB,), flags=mercury,
             free=FREE_ALWAYS, rank=RANK_MERC_SYMTAB, link=HEAD_STRTAB, info=HEAD_LOCALS,
             size=SIZE_SYMBOLS, align=8, entsize=24),
        Kind(kind.MERC_CONSTANT_FUNC, ".nv.merc.nv.constant.optimizer.",
             (elf.SHT_CUDA_CONSTANT_OPTIMIZER,), flags=mercury | read | link, owner=kind.CAPMERC,
             patched=True, rank=RANK_MERC_CONSTANT, info=HEAD_CAPSULE, align=4, brought=True,
             features=IS_LITERALS),
        Kind(kind.MERC_SYSTEM_SHARED, ".nv.merc.nv.shared.reserved.0",
             (elf.SHT_CUDA_RESERVED_SHARED,), flags=mercury | write, rank=RANK_MERC_LATE),
        Kind(kind.MERC_SYMTAB_SHNDX, ".nv.merc.symtab_shndx", (elf.SHT_SYMTAB_SHNDX,),
             flags=mercury, rank=RANK_MERCURY, link=HEAD_MERC_SYMTAB, size=SIZE_INDICES, align=4,
             entsize=4),
        # Data that no tool of CUDA names and that no program addresses.
        Kind(kind.OTHER, "", (elf.SHT_PROGBITS,), mask=program, free=FREE_PLAIN,
             place=PLACE_JOINED),
    )
    # fmt: on
    return tuple(sorted(rows, key=lambda row: row.number))
