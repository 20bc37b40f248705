"""The sections of many cubins as columns: names, sizes and digests, for an index of a build.

Tables are ``bytes`` of packed rows, little endian; ``pylink.fleet.columns`` has their formats.
"""

def list_sections(
    arena: bytes, extents: bytes, hasher: int
) -> tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes]:
    """The objects and sections of every cubin of the arena.

    ``extents`` has a row (offset u64, size u64) for each cubin, ``hasher`` is the address of a
    function as ``XXH3_128bits`` of xxhash.h, or 0 for digests that are all zero. Returns

    * an OBJECT row for each cubin; one with a fault has no sections,
    * a SECTION row for each section but null ones, cubin by cubin, in order of their numbers,
    * the canonical digest of each section's bytes in the file, 16 bytes each,
    * for the families, names up to what differs from file to file: where each ends, int64 with a 0
      in front, and the bytes of all,
    * the same for the rest of each name behind the dot.

    A cubin costs time in proportion to its size, whatever its headers say. ``IndexError`` for an
    extent outside the arena.
    """
