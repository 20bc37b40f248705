"""Payloads that several links take from shared inputs, each decompressed by the first link.

The place of a payload is the number of its shared arena times 2**48, plus its offset there.
`picks` are rows of PICK of `pylink.rowformats`; `homes` has an int32 for each of their arenas: its
number among the shared ones, or -1.
"""

from collections.abc import Container

def list_packed(picks: bytes, homes: bytes) -> list[int]:
    """The places of the compressed payloads in shared arenas."""

def recall(
    picks: bytes, homes: bytes, first: int, stored: dict[int, int], places: Container[int] | None
) -> tuple[bytes, bytes]:
    """Replace payloads by ones that were decompressed before: (picks, missing).

    `stored` maps places to places in the stores, whose numbers start at `first` in `picks`.
    `missing` are the rows of other payloads, limited to `places` if given.
    """

def learn(missing: bytes, homes: bytes, extents: bytes, store: int, stored: dict[int, int]) -> None:
    """Add the results of `payloads.gather` for `missing`, with these `extents`, to `stored`.

    Payloads that could not be decompressed are omitted. `ValueError` if numbers of rows differ.
    """

def compact(arena: bytes, extents: bytes) -> tuple[bytes, bytes]:
    """Copy files to an arena of their own: (arena, extents), like those of `read_files`.

    Returns the arguments if the files take more than half of the arena. `IndexError` for a file
    that runs past the arena.
    """
