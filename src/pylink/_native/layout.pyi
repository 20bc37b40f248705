"""Layout: values of symbols, order and indices of sections and symbols, file offsets.

Tables are packed rows of `rows.pxd`. Sizes, offsets and alignments are bytes.
"""

from pylink._native.tables import Outs, PlacedTables

def assign_values(placed: PlacedTables) -> None:
    """Assign offsets of data symbols in their sections: fills `values`, `homes` and `outs`.

    Common symbols are appended to .nv.global. Shared variables are placed by `sharedmap`.
    """

def order(placed: PlacedTables, *, has_file_records: bool) -> None:
    """Number the sections and symbols of the output.

    Fills `section_order`, `section_index`, `symbol_order`, `symbol_index`,
    `section_symbol_index` and `instance_index`.
    """

def lean_names(placed: PlacedTables, graph: bytes, prototypes: bytes) -> tuple[bytes, bytes]:
    """Rebuild .strtab without unused names: symbol names in order, then prototype strings.

    Fills `strtab`, `out_symbols` and `outs`. `graph` and `prototypes` are the contents of
    .nv.callgraph and .nv.prototype; returns both with the new offsets.
    """

def place(placed: PlacedTables) -> None:
    """Give every section its size and offset in the file.

    Fills `places`, the final `shstrtab`, `phdrs` (empty with -r), `table_offset`, `size`.
    """

def find_kind(outs: Outs, kind: int) -> int:
    """The number of the first OutRow of that kind, or -1."""

def constant_size(outs: Outs, bank: int) -> int:
    """Bytes of the file-scope constant bank, 0 without one."""

def find_large_pools(outs: Outs, limit: int) -> list[int]:
    """The OutRow numbers of the literal pools and jump tables with more than `limit` bytes."""
