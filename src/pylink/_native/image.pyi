"""The output file: copying section contents, and writing tables and headers.

All but the first function write into the ``bytes`` that ``copy_contents`` returned, which no one
else may hold yet. Tables are packed rows of ``rows.pxd``; offsets and sizes are bytes.
"""

def copy_contents(
    arena: bytes,
    sections: bytes,
    outs: bytes,
    section_order: bytes,
    places: bytes,
    out_of: bytes,
    base: bytes,
    stand_ins: bytes,
    blobs: list[bytes],
    spans: list[bytes],
    size: int,
) -> bytes:
    """A new image of ``size`` bytes with the contents of every section.

    They come from the inputs or, where the SpanRow tables say so, from the blobs; the rest of the
    image is zeros. Sections that ``stand_ins`` (of ``folds.pair_sections``, or empty) names another
    for are left out.
    """

def write_relocations(
    image: bytes,
    outs: bytes,
    section_index: bytes,
    places: bytes,
    keeps: bytes,
    symbol_index: bytes,
    section_symbol_index: bytes,
    instance_index: bytes,
) -> None:
    """Write the entries of every relocation section that stays, newest first."""

def write_symbols(
    image: bytes,
    sections: bytes,
    symbols: bytes,
    entities: bytes,
    outs: bytes,
    out_symbols: bytes,
    symbol_order: bytes,
    section_index: bytes,
    places: bytes,
    values: bytes,
    homes: bytes,
    merc_values: bytes,
    dynamic: bytes,
    null_value: int,
    family: int,
    executable: bool,
    preserved: bool,
) -> tuple[int, int]:
    """Write .symtab and .nv.merc.symtab; returns their sh_info values.

    ``merc_values`` overrides ``values`` in the mercury table; ``dynamic`` has the values of the
    instances of extern arrays, ``null_value`` is the value of the null symbol. With
    ``preserved`` (--preserve-relocs, no debug data) shared variables have internal visibility.
    """

def write_headers(
    image: bytes,
    sections: bytes,
    symbols: bytes,
    entities: bytes,
    outs: bytes,
    section_order: bytes,
    section_index: bytes,
    places: bytes,
    symbol_index: bytes,
    phdrs: bytes,
    shstrtab: bytes,
    strtab: bytes,
    shoff: int,
    symtab_info: int,
    mercury_info: int,
    e_flags: int,
    note: int,
    family: int,
    executable: bool,
) -> None:
    """Write string tables, capsule heads, section headers, program headers and the ELF header.

    ``shoff`` is the offset of the section header table, ``symtab_info`` and ``mercury_info`` are
    what ``write_symbols`` returned. ``note`` is by how many bytes nvlink's own note is longer than
    ours: .nv.merc.nv.shared.reserved.0 depends on it.
    """
