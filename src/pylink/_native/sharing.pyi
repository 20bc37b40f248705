"""Payloads that several links take of inputs which they share, each decompressed by the first.

A place is the number of the shared arena that a payload is in, times 2**48, and its offset there.
``picks`` are rows of ``pylink.inputs.picks``; ``homes`` has an int32 for each arena of theirs, its
number among the shared ones or -1.
"""

from collections.abc import Container

def list_packed(picks: bytes, homes: bytes) -> list[int]:
    """The places of the compressed payloads in shared arenas."""

def recall(
    picks: bytes, homes: bytes, first: int, known: dict[int, int], wanted: Container[int] | None
) -> tuple[bytes, bytes]:
    """Where payloads are that were decompressed before: (picks, missing).

    ``known`` has the place of each in the stores, the numbers of which begin at ``first`` in
    ``picks``. ``missing`` are the rows of those that are not known and in ``wanted``; all of them
    where that is None.
    """

def learn(missing: bytes, homes: bytes, extents: bytes, store: int, known: dict[int, int]) -> None:
    """Note in ``known`` what ``inputfiles.gather`` made of ``missing``, with these ``extents``.

    What could not be decompressed is omitted. ``ValueError`` when numbers of rows differ.
    """

def compact(arena: bytes, extents: bytes) -> tuple[bytes, bytes]:
    """These files in an arena of their own, (arena, extents) as those of ``read_files``.

    The results are the arguments where the files take more than half of the arena. ``IndexError``
    for a file that runs past the arena.
    """
