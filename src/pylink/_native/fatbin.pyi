"""Entries of fat binaries and host objects, found without decompressing anything.

Tables are ``bytes`` of packed rows, little endian; ``pylink.inputs.hostobjects`` has their formats.
Every offset and size in them lies inside the arena. docs/inputs.md has the format.
"""

from collections.abc import Callable

def find_entries(
    arenas: list[bytes], homes: bytes, extents: bytes, kinds: bytes
) -> tuple[bytes, bytes, bytes]:
    """Find the entries of all fat binaries and host objects: (entries, sources, faults).

    ``extents`` has a row (offset u64, size u64) and ``kinds`` a byte of ``pylink.inputs.kinds``
    for each source, ``homes`` the number of its arena (int32), or nothing where all are in the
    first; sources of other kinds have no entries. ``entries`` are in order, ``sources`` has a row
    each. ``faults`` has a row for each damaged source, whose entries end before the damage.
    ``ValueError`` when the numbers of rows differ, ``IndexError`` for an extent outside its arena.
    """

def pick_entries(
    found: tuple[bytes, bytes, bytes],
    sources: tuple[bytes, bytes, bytes],
    rank: Callable[[int, int, int], int],
    limit: int,
    linked: dict[int, set[int]],
) -> tuple[bytes, list[int], list[int], list[int], list[int], int]:
    """What a link takes of its sources: (picks, sources, odd, missing, bare, codecs).

    ``found`` is what ``find_entries`` gave for ``sources``: homes, extents and kinds. ``rank(kind,
    sm, flags)`` of an entry is the higher the better, and negative for one that cannot be used; of
    each container the best is taken, the first of equal ones. ``limit`` is how many bytes
    compressed payloads may become in all, and of sources in ``linked`` only containers of the set
    are taken. What has no entries is taken as it is. ``picks`` are rows of ``pylink.inputs.picks``
    in order, ``sources`` the number of the source of each, ``odd`` the rows that are not plain
    cubins; ``missing`` the sources with containers that nothing was taken of, ``bare`` those that
    have none, and ``codecs`` has a bit for each that is needed. ``ValueError`` when columns differ
    in length; exceptions of ``rank`` pass through.
    """

def collect_names(
    arenas: list[bytes], homes: bytes, rows: bytes, numbers: list[int]
) -> tuple[dict[bytes, None], dict[bytes, None], dict[bytes, None]] | None:
    """What the host code of the sources ``numbers`` uses: (external, internal, variables).

    Kernels that other files see, other kernels, and variables, in order. None when one of the
    sources has no device code or no list. ``IndexError`` for what is in no arena.
    """
