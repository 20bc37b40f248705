"""A naive reference of the constant bank after identical pieces were folded.

Written from "--kernels-used and --variables-used" in docs/format-notes.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

FOLDABLE = (12, 16, 20, 24, 32, 48, 64)  # sizes of pieces that are folded, in bytes


class Piece(NamedTuple):
    """The contents of one input in the file-scope constant bank; `align` is a power of two."""

    data: bytes
    align: int

    @property
    def takes_part(self) -> bool:
        """Whether identical pieces of this size are folded."""
        size = len(self.data)
        return size in FOLDABLE or (size == self.align and size in (4, 8))


def fold_reference(pieces: list[Piece], written: Sequence[int] = ()) -> tuple[bytes, int]:
    """Return the contents of the bank and the value of the null symbol.

    `written` are the offsets, before folding, of relocations and of fields that the link sets. If
    one is in an omitted piece or outside of the bank, nothing is folded.
    """
    bank, null_value, dropped = _lay_out(pieces, folds=True)
    if any(place in dropped or place >= len(bank) for place in written):
        bank, null_value, _ = _lay_out(pieces, folds=False)
    return bank, null_value


def _lay_out(pieces: list[Piece], *, folds: bool) -> tuple[bytes, int, set[int]]:
    """Return bank, the null symbol's value, and the offsets (without folding) of omitted bytes."""
    bank, null_value, dropped = b"", 0, set[int]()
    for number, (piece, place) in enumerate(zip(pieces, places(pieces), strict=True)):
        zero_word = len(piece.data) in (4, 8) and not any(piece.data)
        if folds and piece.takes_part and not zero_word and piece in pieces[:number]:
            dropped.update(range(place, place + len(piece.data)))
            continue
        bank += bytes(-len(bank) % piece.align)
        if piece.takes_part:
            null_value = len(bank)
        bank += piece.data
    return bank, null_value, dropped


def places(pieces: list[Piece]) -> list[int]:
    """Return the offset of each piece if none is omitted."""
    offsets, end = [], 0
    for piece in pieces:
        end += -end % piece.align
        offsets.append(end)
        end += len(piece.data)
    return offsets
