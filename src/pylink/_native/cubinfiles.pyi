"""The sections of cubins of a build tree, file after file, as columns for an index."""

from pylink._native.sectionindex import Columns

def read_cubins(
    files: tuple[list[bytes], bytes, bytes, bytes, bytes],
    largest: int,
    first: int,
    hasher: int,
) -> tuple[bytes, Columns]:
    """The objects and sections of those files that are cubins, and a byte of fate for each file.

    `files` are columns as a census has them: names, roots, ends, text, stamps. Their stamps are
    compared with what each is when it is read; three zeros in place of all but the size tell
    nothing. Fates are 0 for a cubin, which has the next object, 1 for what holds no device code,
    and 2 for what is to be looked at closely: files with others in them, of more than `largest`
    bytes, that cannot be read, or that are not as they were. `first` and `hasher` are as in
    `list_sections`. `ValueError` for columns of different lengths, `IndexError` for a root or
    a path that is in none.
    """
