"""Merging: creates the sections and symbols of the output, and sorts the relocations.

The output behaves as if its sections and symbols were created one after the other while the inputs
are read in command-line order; string tables, symbol order and section order all follow from
this creation (docs/order.md). Afterwards no section or symbol appears.
"""

from pylink._native.tables import MergedTables

def merge(merged: MergedTables) -> None:
    """Create every section and symbol of the output and sort the relocations.

    Fills all columns of the output, and `shstrtab` and `strtab` as far as names are known.
    """
