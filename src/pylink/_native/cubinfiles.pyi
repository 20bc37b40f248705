"""The sections of cubins of a build tree, file after file, as columns for an index."""

from pylink._native.sectionindex import Columns

def read_cubins(
    files: tuple[list[bytes], bytes, bytes, bytes, bytes], largest: int, first: int, hasher: int
) -> tuple[bytes, Columns]:
    """Return an IndexedKind (a byte) for each file, and the objects and sections of cubins.

    `files` are columns of a census: names, roots, ends, text, stamps. `first` is the number of the
    first cubin in the index, `hasher` the address of a hash function (see `list_sections`). Kinds:

    * 0: a cubin; its object is the next in the result
    * 1: no device code
    * 2: to be opened by the caller, since it contains other files, has more than `largest` bytes,
      cannot be read, or has another stamp now (of an unknown stamp, only the size is compared)

    `ValueError` for columns of different lengths, `IndexError` for an invalid root or path.
    """
