"""The columns of the rows that tables have, in order; made by `pylink.facts.rowtypes`.

For type checkers and for people: a row of a table (`pylink._native.tables`) has these attributes,
and is of no class here.
"""

from __future__ import annotations


class FileRow:
    """One input file. Offsets are into the arena, the single buffer that holds all input bytes."""

    offset: int
    size: int
    first_section: int
    section_count: int
    first_symbol: int
    symbol_count: int
    mercury_symbols: int  # leading symbols that .nv.merc.symtab repeats
    toolkit: int  # newest number that header and note name, 0 for none
    patch: int  # patch level of the tool of that toolkit, 0 where unknown
    sm: int  # SM number of the code
    ptx_sm: int  # SM number of the PTX it was compiled from, or UNKNOWN_SM
    format: int  # row of FORMAT
    flags: int  # FileFlag bits
    strtab: int  # arena offset of the string table of .symtab
    strtab_size: int
    merc_symtab: int  # arena offset, 0 without such a table
    first_note: int  # first section with a note, attribute or call record
    note_end: int  # after the last one
    first_code: int  # first section with code
    code_end: int  # after the last one


class SectionRow:
    """One input section. `target` is what sh_info names, or -1: of code and of a capsule the
    symbol of the function; of others (relocations, .nv.info.F ...) a section.
    """

    name: int  # arena offset of a NUL-terminated name
    offset: int  # arena offset of its bytes; 0 without bytes
    size: int
    flags: int
    name_size: int
    type: int
    link: int
    info: int
    align: int
    entsize: int
    file: int
    target: int
    kind: int
    bank: int  # bank of a section of constants


class SymbolRow:
    """One input symbol. `section` is a SectionRow, or -1 for undefined, absolute and common."""

    name: int  # arena offset of a NUL-terminated name
    value: int
    size: int
    merc_size: int  # st_size in .nv.merc.symtab: that of the mercury form
    name_size: int
    file: int
    section: int
    shndx: int
    info: int
    other: int


class FaultRow:
    """The reason for refusing an input, with the index of the section and of the entry in it."""

    file: int
    section: int
    index: int
    reason: int
    value: int
    limit: int


class EntityRow:
    """One distinct symbol of the link, in creation order: file by file, functions first."""

    first: int  # symbol row of its first mention
    winner: int  # symbol row of the definition that counts, or `first`
    kind: int
    flags: int
    size: int  # common: the largest
    align: int  # common and shared
    regcount: int  # functions
    frame: int  # bytes of stack frame


class CallRow:
    """One row of .nv.callgraph or .nv.prototype, of a function copy that was current when its
    file was merged (address-taken rows: of any copy).
    """

    caller: int  # entity
    callee: int  # entity; BLOCK_TAKEN, _INDIRECT, _PROTOTYPE: number of a string
    block: int  # Block
    won: int  # whether the copy that stays has the row; first the copy's symbol


class ClashRow:
    kind: int  # Clash
    symbol: int  # symbol row of the later one
    first: int  # symbol row of the earlier one


class OutRow:
    """One section of the output, in creation order. Mercury twins follow their plain section by
    `merc`; they have no creation number of their own.
    """

    name: int  # offset in .shstrtab
    symbol_name: int  # offset in .strtab
    kind: int
    bank: int
    type: int
    flags: int
    size: int
    align: int
    entsize: int
    entity: int  # function of a per-function section
    target: int  # relocations: the section they patch
    rel: int  # OutRow of its .rel section, or -1
    rela: int  # OutRow of its .rela section, or -1
    merc: int  # OutRow of its mercury twin, or -1
    twin: int  # a mercury section: its plain section
    next: int  # next section of the same entity
    head: int  # relocations: the last entry added, see EmittedRow
    count: int  # relocations: entries
    counted: int  # relocations: entries seen by the rule of two forms
    marks: int  # OutFlag bits
    source: int  # an input section that it was created for
    text: int  # the .text row of its function, or -1
    created: int  # number among all sections created, 1 for the first


class OutSymbolRow:
    name: int  # offset in .strtab
    entity: int  # or -1
    section: int  # section symbol: the OutRow
    instance: int  # externsharedinstance: entity of its kernel, or -1
    part: int
    dropped: int  # name stays, symbol goes


class EmittedRow:
    """A relocation that stays. Entries of one section form a list, newest first."""

    offset: int
    addend: int
    type: int
    entity: int  # symbol, or -1
    section: int  # section symbol: the OutRow; -2 - kernel: its instance; or -1
    next: int


class FixupRow:
    """A relocation that the link resolves."""

    offset: int  # in the output section
    addend: int
    type: int
    out: int  # section to patch
    entity: int  # symbol, or -1
    section: int  # section symbol: the input section, or -1
    function: int  # entity of the code that holds it, or -1
    how: int  # FixupFlag bits
    reloc: int  # OutRow of the relocation section it came through


class RebuildRow:
    offset: int  # in the piece
    addend: int
    out: int  # the debug section
    piece: int  # input section
    type: int
    outcome: int
    entity: int  # or -1
    section: int  # input section of a section symbol, or -1


class FunctionRow:
    """Resources of one function, from the call graph; rows of other entities are empty."""

    regcount: int  # kernels: the largest of all functions reached
    stack: int  # bytes of the deepest path; NO_STACK_BOUND with recursion
    raised_by: int  # entity whose register count a kernel took, or -1
    info: int  # input section: .nv.info.F of the copy that won, or -1
    merc_info: int  # input section: .nv.merc.nv.info.F, or -1
    recursive_calls: int  # kernels: callees without a bound on their stack
    keeps: int  # kernels: KeepsFlag bits
    barriers: int  # kernels: largest barrier count in sh_flags of functions reached


class SpanRow:
    """Bytes made by the link for one output section: a part of a blob."""

    out: int
    offset: int
    size: int


class PlaceRow:
    """The place of one section in the output file."""

    offset: int
    size: int
    name: int  # offset in .shstrtab
    contents: int  # ContentsFrom


class PatchRow:
    """A relocation with its value, for the loop that patches."""

    offset: int  # in the image
    value: int  # S + A; with `implicit`, S: the field holds A
    type: int
    bank: int
    implicit: int


class PoolRow:
    """The place of a piece of a function's pool in one kernel."""

    section: int  # input section with the bytes
    kernel: int  # entity
    offset: int  # in .nv.constant2 of the kernel
    end: int  # size of .nv.constant2 of the kernel with this function's pieces
    function: int  # entity; the kernel itself for pieces of its own
    align: int  # new alignment of .nv.constant2 of the kernel
    flags: int  # PoolFlag


class VariableRow:
    """A shared variable, or an unsized extern array."""

    size: int
    align: int
    owner: int  # number of a kernel, COMMON or DEAD
    flags: int  # REFERENCED, EXTERN, FILE_ALIGN, STAYS


class UseRow:
    """A kernel whose code, or that of a function that it reaches, refers to a variable."""

    variable: int  # number of a VariableRow
    kernel: int


class ExternUseRow:
    """A kernel that uses an extern array."""

    kernel: int
    tie: int  # device function with the use, or the array with -g; -1: own code
    align: int  # alignment of the array, 0 if unknown
    flags: int  # LATE


class KernelRow:
    """The section `.nv.shared.K` of a kernel; the last row is that of `.nv_debug.shared`."""

    size: int
    align: int  # sh_addralign
    extern_address: int  # of extern arrays in the kernel's own code, -1 without
    flags: int  # SURVIVES, HAS_SYMBOL
