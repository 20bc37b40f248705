"""Folds repeated small pieces of the file-scope constant bank.

A link that selects kernels writes a small `.nv.constant3` piece only once
(docs/format-notes.md). Symbols and relocations still describe the unfolded bank.
"""

from pylink._native.results import PlacedTables

def fold_pieces(placed: PlacedTables) -> None:
    """Make the file-scope constant bank as the file has it; fills `outs` and `null_value`.

    A small piece (one input's part of the bank) that repeats an earlier one is dropped, except for
    a literal of value 0. The bank is added as contents of its section. `null_value` is the offset
    in bytes of the last small piece that stays; if that is 0, or none stays, it does not change. No
    piece is folded if a relocation would then change bytes that are dropped, or that are after the
    end of the bank.
    """
