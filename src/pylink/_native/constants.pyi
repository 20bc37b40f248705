"""Pieces of the file-scope constant bank, the small ones folded when they repeat.

A link that selects kernels writes a small ``.nv.constant3`` piece only once
(docs/format-notes.md). Symbols and relocations go on describing the unfolded bank.
"""

def fold_pieces(
    arena: bytes, sections: bytes, out_of: bytes, outs: bytes
) -> tuple[bytes, bytes, bytes, int]:
    """Lay out the physical bank: (outs, blob, spans, null_value).

    ``outs`` with the bank's physical size, its contents with their SpanRow, and the st_value of
    the null symbol: the offset in bytes of the last piece that the fold looked at and kept.
    """

def find_cut_relocation(outs: bytes, keeps: bytes) -> bool:
    """Whether a relocation that stays lies behind the end of the folded bank."""
