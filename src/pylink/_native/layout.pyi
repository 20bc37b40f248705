"""Layout: values of symbols, order and indices of sections and symbols, places in the file.

Tables are packed rows of ``rows.pxd``. Sizes, offsets and alignments are bytes.
"""

def assign_values(
    sections: bytes,
    symbols: bytes,
    entities: bytes,
    symbol_entity: bytes,
    outs: bytes,
    out_symbols: bytes,
    out_of: bytes,
    base: bytes,
    executable: bool,
) -> tuple[bytes, bytes, bytes]:
    """Offsets of data symbols in their sections: (values, homes, outs).

    u64 value and i32 OutRow per entity (-1: none), and the OutRow table with .nv.global grown by
    the common symbols at its end. Shared variables are placed elsewhere.
    """

def order(
    outs: bytes,
    out_symbols: bytes,
    calls: bytes,
    entities: bytes,
    family: int,
    traits: int,
    has_file_records: bool,
) -> tuple[bytes, bytes, bytes, bytes, bytes, bytes]:
    """Number the sections and symbols of the output.

    ``traits`` are the TRAIT_ bits of the release followed. Returns (section_order, section_index,
    symbol_order, symbol_index, section_symbol_index, instance_index): i32 OutRow numbers in file
    order; u32 header index per OutRow (0: omitted); i32 OutSymbolRow numbers in symbol-table order;
    u32 symbol index per entity and per OutRow (0: none); u32 symbol index of the
    externsharedinstance per kernel entity (0: none).
    """

def lean_names(
    outs: bytes,
    out_symbols: bytes,
    symbol_order: bytes,
    strtab: bytes,
    graph: bytes,
    prototypes: bytes,
) -> tuple[bytes, bytes, bytes, bytes, bytes]:
    """.strtab of what there is: (outs, out_symbols, strtab, graph, prototypes).

    Names in the order of the symbols, then strings of prototypes. ``graph`` and ``prototypes`` are
    the contents of .nv.callgraph and .nv.prototype. All tables have the new offsets.
    """

def place(
    arena: bytes,
    sections: bytes,
    outs: bytes,
    section_order: bytes,
    section_index: bytes,
    spans: list[bytes],
    symbol_order: bytes,
    out_symbols: bytes,
    shstrtab: bytes,
    born_names: bytes,
    strtab: bytes,
    family: int,
    traits: int,
    executable: bool,
) -> tuple[bytes, bytes, bytes, int, int]:
    """Give every section its size and offset: (places, shstrtab, phdrs, table_offset, size).

    ``spans`` are SpanRow tables of the contents that the link made; ``born_names`` is the .strtab
    that ``outs`` was born with, ``strtab`` that of the output. PlaceRow per OutRow, the final
    .shstrtab, packed program headers (empty with -r), the offset of the section header table, and
    the size of the file.
    """

def find_kind(outs: bytes, kind: int) -> int:
    """The number of the first OutRow of that kind, or -1."""

def constant_size(outs: bytes, bank: int) -> int:
    """Bytes of the file-scope constant bank, 0 without one."""

def find_large_pools(outs: bytes, limit: int) -> list[int]:
    """The OutRow numbers of the literal pools and jump tables with more than ``limit`` bytes."""
