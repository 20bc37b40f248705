"""Folds repeated small pieces of the file-scope constant bank.

A link that selects kernels writes a small `.nv.constant3` piece only once
(docs/format-notes.md). Symbols and relocations still describe the unfolded bank.
"""

from pylink._native.tables import PlacedTables

def fold_pieces(placed: PlacedTables) -> None:
    """Lay out the physical bank: fills `outs` and `null_value`, and adds the bank's contents.

    `null_value` is the offset in bytes of the last piece that the fold compared and kept. No
    piece folds if one with relocations would.
    """
