"""The sections of many cubins in an arena as columns (names, sizes, digests), for an index."""

# Packed rows of objects, which are the cubins; the columns of sections, as in
# `pylink.fleet.columns.SECTIONS`, but with names as numbers (int32); and two dictionaries, of the
# families (such as `.text`) and of the suffixes in names. A dictionary has two parts: the end of
# each of its texts (int64, after a 0), and the texts, joined.
Columns = tuple[bytes, tuple[bytes, ...], tuple[bytes, bytes], tuple[bytes, bytes]]

def list_sections(arena: bytes, extents: bytes, first: int, hasher: int) -> Columns:
    """Return the objects and sections of every cubin in the arena.

    `extents` has a row (offset u64, size u64) for each cubin; `first` is the number of the
    first one in the index, `hasher` the address of a function like `XXH3_128bits` of xxhash.h, or 0
    for digests of zeros. Each cubin has a row; with a fault it has no sections. Sections are listed
    cubin by cubin in order of their numbers, without null sections. Digests are of each section's
    bytes in the file, in the canonical form of xxhash.h.

    Time is proportional to the size of the cubins, for any headers. `IndexError` for an extent
    outside the arena.
    """

def find_function(library: bytes, name: bytes) -> int:
    """Return the address of a function in the library at this path, which stays open.

    0 if the library or the function is not found.
    """
