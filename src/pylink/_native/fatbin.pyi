"""Entries of fat binaries and host objects, found without decompressing anything.

Tables are ``bytes`` of packed rows, little endian; ``pylink.inputs.hosted`` has their formats.
Every offset and size in them lies inside the arena. docs/inputs.md has the format.
"""

def find_entries(arena: bytes, extents: bytes, kinds: bytes) -> tuple[bytes, bytes, bytes]:
    """Find the entries of all fat binaries and host objects: (entries, sources, faults).

    ``extents`` has a row (offset u64, size u64) and ``kinds`` a byte of ``pylink.inputs.kinds``
    for each source; sources of other kinds have no entries. ``entries`` are in order, ``sources``
    has a row each. ``faults`` has a row for each damaged source, whose entries end before the
    damage. ``ValueError`` when the numbers of rows differ, ``IndexError`` for an extent outside
    the arena.
    """
