"""The columns of the rows that tables have, in order; made by `pylink.facts.rowtypes`.

For type checkers and for people: a row of a table (`pylink._native.tables`) has these attributes,
and is of no class here.
"""

from __future__ import annotations


class FileRow:
    """One input file. Offsets are into the arena, the single buffer that holds all input bytes."""

    offset: int
    size: int  # bytes
    first_section: int  # SectionRow of its section 0
    section_count: int
    first_symbol: int  # SymbolRow of its symbol 0
    symbol_count: int
    mercury_symbols: int  # number of leading symbols that .nv.merc.symtab repeats
    toolkit: int  # newest toolkit in header and note: 130 for CUDA 13.0; 0 for none
    patch: int  # patch level of the tool of that toolkit, 0 where unknown
    sm: int  # SM number of the code: 90 for sm_90
    ptx_sm: int  # SM number of the PTX it was compiled from, or UNKNOWN_SM
    format: int  # row of FORMAT (facts/objectformats.py)
    flags: int  # FileFlag bits
    strtab: int  # arena offset of the string table of .symtab
    strtab_size: int  # bytes
    merc_symtab: int  # arena offset of .nv.merc.symtab, 0 without it
    first_note: int  # first SectionRow with a note, attribute or call record
    note_end: int  # number after the last SectionRow with one
    first_code: int  # first SectionRow with code
    code_end: int  # number after the last SectionRow with code


class SectionRow:
    """One input section: its header, and what it belongs to."""

    name: int  # arena offset of a NUL-terminated name
    offset: int  # arena offset of its bytes; 0 without bytes
    size: int  # sh_size
    flags: int  # sh_flags
    name_size: int  # bytes of the name, without NUL
    type: int  # sh_type
    link: int  # sh_link
    info: int  # sh_info
    align: int  # sh_addralign, at least 1
    entsize: int  # sh_entsize
    file: int  # FileRow
    target: int  # SectionRow that sh_info names (code, capsule: SymbolRow), or -1
    kind: int  # number in facts/sectionkinds.py
    bank: int  # bank of a section of constants, else 0


class SymbolRow:
    """One input symbol."""

    name: int  # arena offset of a NUL-terminated name
    value: int  # st_value
    size: int  # st_size
    merc_size: int  # st_size in .nv.merc.symtab: that of the mercury form
    name_size: int  # bytes of the name, without NUL
    file: int  # FileRow
    section: int  # SectionRow; -1 if undefined, absolute or common
    shndx: int  # st_shndx
    info: int  # st_info
    other: int  # st_other


class FaultRow:
    """The reason why an input was refused."""

    file: int  # FileRow
    section: int  # index in the file, or -1
    index: int  # of an entry, symbol or byte in that section, or -1
    reason: int  # ReadFault
    value: int  # the wrong value
    limit: int  # what it should be, or its largest value; 0 where none is given


class EntityRow:
    """One distinct symbol of the link, in creation order: file by file, functions first."""

    first: int  # SymbolRow of its first mention
    winner: int  # the definition that is linked, or `first` if there is none
    kind: int  # EntityKind
    flags: int  # EntityFlag bits
    size: int  # bytes; of common symbols the largest
    align: int  # of variables that are or were common, or are shared; else 0
    regcount: int  # of a function: its registers
    frame: int  # of a function: bytes of its stack frame


class CallRow:
    """One row of .nv.callgraph or .nv.prototype. Calls (BLOCK_DIRECT, _INDIRECT, _CANDIDATE)
    come only from a function's definition that had won when its file was read, other rows
    from any.
    """

    caller: int  # EntityRow; BLOCK_TAKEN, _PROTOTYPE: the function
    callee: int  # EntityRow; BLOCK_TAKEN, _INDIRECT, _PROTOTYPE: row of prototypes
    block: int  # CallBlock
    of_linked_copy: int  # 1: from the linked definition. At first the definition's SymbolRow


class ClashRow:
    """A contradiction between two symbols of one name: definitions, or mentions. For the kinds
    COMMON and FUNCTION_AS_VARIABLE, `symbol` and `first` are the same symbol.
    """

    kind: int  # Clash
    symbol: int  # SymbolRow of the later one
    first: int  # SymbolRow of the earlier one


class OutRow:
    """One section of the output, in creation order. Mercury forms (twins) have no creation
    number.
    """

    name: int  # offset in .shstrtab
    symbol_name: int  # offset in .strtab of the name of its section symbol
    kind: int  # number in facts/sectionkinds.py
    bank: int  # bank of a section of constants, else 0
    type: int  # sh_type
    flags: int  # sh_flags
    size: int  # bytes so far
    align: int  # sh_addralign
    entsize: int  # sh_entsize
    entity: int  # function of a per-function section, or -1
    target: int  # relocations: the section they patch, or -1
    rel: int  # its .rel section, or -1
    rela: int  # its .rela section, or -1
    merc: int  # its mercury form, or -1
    twin: int  # a mercury section: its plain section, or -1
    next: int  # the section of `entity` created before it, or -1
    head: int  # relocations: the entry added last, or -1
    count: int  # relocations: number of entries
    rela_count: int  # RELA entries so far: one after the first may also create the .rel
    marks: int  # OutFlag bits
    source: int  # an input section that it was created for, or -1
    text: int  # the code of its function, or -1
    created: int  # number among all sections created, 1 for the first; 0: a twin


class OutSymbolRow:
    """One symbol of the output, in creation order."""

    name: int  # offset in .strtab
    entity: int  # EntityRow; -1 for a section symbol and for an instance
    section: int  # of a section symbol: its OutRow; else -1
    instance: int  # symbol of a kernel's extern arrays (-r): the kernel; else -1
    part: int  # Part
    dropped: int  # 1: .strtab has its name, but .symtab not the symbol


class EmittedRow:
    """A relocation that the output has. Entries of one section form a list, newest first."""

    offset: int  # of the field in the section that is patched
    addend: int
    type: int  # R_CUDA_ or R_MERCURY_ number
    entity: int  # EntityRow of the symbol, or -1
    section: int  # section symbol: its OutRow; instance of kernel K: -2 - K; or -1
    next: int  # the entry added before it, or -1


class FixupRow:
    """A relocation that the link resolves."""

    offset: int  # of the field in the section that is patched
    addend: int
    type: int  # R_CUDA_ or R_MERCURY_ number
    out: int  # OutRow of the section that is patched
    entity: int  # EntityRow of the symbol, or -1
    section: int  # of a section symbol: its SectionRow; else -1
    function: int  # EntityRow of the function whose code has the field, or -1
    how: int  # FixupFlag bits
    listed_in: int  # --preserve-relocs: relocation section that records it, or -1


class RebuildRow:
    """A relocation of a debug section that the link computes again, from sm_100 on."""

    offset: int  # of the field in `piece`
    addend: int
    out: int  # OutRow of the debug section
    piece: int  # SectionRow of the input's debug section
    type: int  # R_CUDA_ number
    outcome: int  # RebuildOutcome
    entity: int  # EntityRow of the symbol, or -1
    section: int  # of a section symbol: its SectionRow; else -1


class FunctionRow:
    """Resources of one function, from the call graph; rows of other entities are empty."""

    regcount: int  # of a kernel without `keeps`: the largest of functions reached
    stack: int  # bytes of the deepest path; NO_STACK_BOUND with recursion
    raised_by: int  # function whose register count it took over or passes on, or -1
    info: int  # .nv.info.F of the linked definition, or -1
    merc_info: int  # .nv.merc.nv.info.F of the linked definition, or -1
    recursive_calls: int  # of a kernel: callees without a bound on their stack
    keeps: int  # of a kernel: KeepsFlag bits, which say what it does not take over
    barriers: int  # of a kernel: most barriers of functions reached; only by CUDA 12.9


class SpanRow:
    """Bytes that the link makes for one output section: a range of a Blob."""

    out: int  # OutRow
    offset: int  # in the blob
    size: int  # bytes


class PlaceRow:
    """The place of one section in the output file."""

    offset: int  # sh_offset
    size: int  # sh_size
    name: int  # offset in .shstrtab
    contents: int  # ContentsFrom


class PatchRow:
    """A relocation with its value, for the loop that patches."""

    offset: int  # in the image
    value: int  # S + A; with `implicit`, S: the field holds A
    type: int  # R_CUDA_ number; for a mercury type that of its plain one
    bank: int  # of the section that has the symbol, or 0
    implicit: int  # 1: the entry is a Rel


class PoolRow:
    """A piece of a function's pool (its constants in bank 2), and its place in an entity's pool."""

    section: int  # input section with the bytes
    kernel: int  # entity whose pool has the piece: a kernel, or `function` itself
    offset: int  # of the piece in .nv.constant2 of the kernel
    end: int  # bytes of .nv.constant2 with it; of a callee: with all its pieces
    function: int  # entity; the kernel itself for pieces of its own
    align: int  # alignment of .nv.constant2 of the kernel from this piece on
    flags: int  # PoolFlag


class VariableRow:
    """A shared variable, an unsized extern array, or all bytes of a section .nv.shared.K as one
    variable: of a section without symbols, and of each section in a file compiled with -ewp.
    """

    size: int  # bytes
    align: int  # bytes
    owner: int  # number of a kernel, COMMON or DEAD
    flags: int  # REFERENCED, EXTERN, FILE_ALIGN, STAYS


class UseRow:
    """A sized variable, and a kernel whose code, or that of a function that it reaches, refers
    to it. With -r, and for an idle kernel (neither selected nor launched by device code),
    only the kernel's own code counts.
    """

    variable: int  # number of a VariableRow
    kernel: int  # number of a kernel


class ExternUseRow:
    """A kernel that uses an extern array. Kernels whose `tie` is the same and not -1 have the
    array at one address.
    """

    kernel: int  # number of a kernel
    tie: int  # device function that uses the array (-g: the array); -1: own code
    align: int  # alignment of the array in bytes, 0 if unknown
    flags: int  # ARRAYS_ONLY


class KernelRow:
    """The section `.nv.shared.K` of a kernel; the last row is that of `.nv_debug.shared`."""

    size: int  # bytes
    align: int  # sh_addralign
    extern_address: int  # of the extern arrays that the kernel or its callees use, -1 without
    flags: int  # SURVIVES, HAS_SYMBOL
