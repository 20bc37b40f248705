"""The sections of many cubins of an arena as columns: names, sizes and digests, for an index."""

# Packed rows of objects; eleven columns of sections, as `pylink.fleet.columns.SECTIONS` has them
# except for the names, which are numbers (int32); for families, and for what follows the dot, where
# each name ends (int64, with a 0 in front) and the bytes of all.
Columns = tuple[bytes, tuple[bytes, ...], tuple[bytes, bytes], tuple[bytes, bytes]]

def list_sections(arena: bytes, extents: bytes, first: int, hasher: int) -> Columns:
    """The objects and sections of every cubin of the arena.

    ``extents`` has a row (offset u64, size u64) for each cubin; ``first`` is the number of the
    first one, ``hasher`` the address of a function as ``XXH3_128bits`` of xxhash.h, or 0 for
    digests that are all zero. There is an OBJECT row for each cubin, and one with a fault has no
    sections; of sections all but null ones, cubin by cubin, in order of their numbers. Digests are
    canonical, of each section's bytes in the file.

    A cubin costs time in proportion to its size, whatever its headers say. ``IndexError`` for an
    extent outside the arena.
    """

def find_function(library: bytes, name: bytes) -> int:
    """The address of a function of the library of this path, which stays open; 0 for none."""
