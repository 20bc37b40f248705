"""What folding the pieces of the constant bank has to give, said plainly.

Written from "--kernels-used and --variables-used" in docs/format-notes.md.
"""

from __future__ import annotations

from typing import NamedTuple

FOLDABLE = (12, 16, 20, 24, 32, 48, 64)


class Piece(NamedTuple):
    """What one input has in the file-scope constant bank; `align` is a power of two."""

    data: bytes
    align: int

    @property
    def takes_part(self) -> bool:
        size = len(self.data)
        return size in FOLDABLE or (size == self.align and size in (4, 8))


def fold_reference(pieces: list[Piece]) -> tuple[bytes, int]:
    """Contents of the bank and the value of the null symbol."""
    bank, null_value = b"", 0
    for number, piece in enumerate(pieces):
        zero_word = len(piece.data) in (4, 8) and not any(piece.data)
        if piece.takes_part and not zero_word and piece in pieces[:number]:
            continue
        bank += bytes(-len(bank) % piece.align)
        if piece.takes_part:
            null_value = len(bank)
        bank += piece.data
    return bank, null_value


def is_cut_reference(size: int, entries: list[int]) -> bool:
    """Whether folding left an entry that stays, at one of these offsets, without its bytes."""
    return max(entries, default=-1) >= size
