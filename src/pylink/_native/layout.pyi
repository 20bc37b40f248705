"""Layout: values of symbols, order and indices of sections and symbols, file offsets.

Sizes, offsets and alignments are bytes. A function that takes `placed` fills columns of it, which
its docstring names.
"""

from pylink._native.results import PlacedTables
from pylink._native.tables import Outs

def assign_values(placed: PlacedTables) -> None:
    """Assign offsets of data symbols in their sections: fills `values`, `homes` and `outs`.

    Common symbols are appended to .nv.global. The module `shared` places shared variables.
    """

def order(placed: PlacedTables, *, has_file_records: bool) -> None:
    """Number the sections and symbols of the output.

    `has_file_records` says whether .nv.info has records; without any the output omits it. Fills
    `section_order`, `section_index`, `symbol_order`, `symbol_index`, `section_symbol_index` and
    `instance_index`.
    """

def rebuild_strtab(placed: PlacedTables, graph: bytes, prototypes: bytes) -> tuple[bytes, bytes]:
    """Rebuild .strtab without unused names: symbol names in order, then prototype strings.

    Fills `strtab`, `out_symbols` and `outs`. `graph` and `prototypes` are the contents of
    .nv.callgraph and .nv.prototype; returns both with the new offsets. For releases whose output
    has no unused names (TRAIT_LEAN_NAMES).
    """

def place(placed: PlacedTables) -> None:
    """Give every section its size and offset in the file.

    Fills `places`, the final `shstrtab`, `phdrs` (empty with -r), `table_offset`, `size`.
    """

def find_sections(outs: Outs, kinds: list[int]) -> list[int]:
    """Return for each kind, which is below 256, the number of its first OutRow, or -1."""

def file_bank_size(outs: Outs, bank: int) -> int:
    """Return the bytes of a file-scope constant bank, 0 if the output has none of that number."""

def find_large_pools(outs: Outs, limit: int) -> list[int]:
    """List the OutRows of pools (literals and jump tables of a function) above `limit` bytes."""
