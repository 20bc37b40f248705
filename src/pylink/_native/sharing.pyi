"""Payloads that several links take from shared inputs, each decompressed by the first link.

The place of a payload is the number of its shared arena times 2**48, plus its offset there.
`picks` are rows of PICK of `pylink.rowformats`; `arena_numbers` has an int32 for each of their
arenas: its number among the shared ones, or -1.
"""

from collections.abc import Container

def list_packed(picks: bytes, arena_numbers: bytes) -> list[int]:
    """Return the place (arena number << 48 | offset) of compressed payloads in shared arenas."""

def replace_packed(
    picks: bytes,
    arena_numbers: bytes,
    first: int,
    stored: dict[int, int],
    places: Container[int] | None,
) -> tuple[bytes, bytes]:
    """Replace packed payloads by copies that were decompressed before: (picks, missing).

    Packed payloads are compressed ones in shared arenas. `stored` maps their places (see
    `list_packed`) to places in the stores, which are arenas of decompressed payloads; the first
    store is arena number `first` of the returned picks. `missing` are the picks of other packed
    payloads, with `places` only those at these places.
    """

def record_unpacked(
    missing: bytes, arena_numbers: bytes, extents: bytes, store: int, stored: dict[int, int]
) -> None:
    """Add to `stored` where store number `store` has the payloads of `missing`, decompressed.

    `payloads.gather` made it of `missing`; `extents` are its result. Payloads that could not be
    decompressed are omitted. `ValueError` if numbers of rows differ.
    """

def compact(arena: bytes, extents: bytes) -> tuple[bytes, bytes]:
    """Copy files to an arena of their own: (arena, extents), like those of `read_files`.

    Returns the arguments if the files take more than half of the arena. `IndexError` for a file
    that runs past the arena.
    """
