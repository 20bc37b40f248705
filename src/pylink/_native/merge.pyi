"""Merging: creates the sections and symbols of the output, and decides about each relocation.

Sections and symbols are created one after the other while the inputs are read in command-line
order. String tables, symbol order and section order all follow from this (docs/order.md).
Afterwards only --preserve-relocs creates sections (`resolved`).
"""

from pylink._native.results import MergedTables

def merge(merged: MergedTables) -> None:
    """Create the sections and symbols of the output, and decide about each relocation.

    Fills `outs`, `out_symbols`, `emitted`, `fixups`, `rebuilds`, `out_of`, `base`, `referenced`,
    `array_align`, `prototype_offsets`, `shstrtab` and `strtab`. The layout appends the names of
    mercury sections to .shstrtab and, with TRAIT_LEAN_NAMES, writes both string tables anew.
    """
