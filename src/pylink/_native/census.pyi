"""Compares the files of build trees with an index: finds new, changed and removed files."""

from collections.abc import Iterable

# Columns of files: roots; number of each file's root (int32); end of its path in the text (int64,
# with a 0 in front); text of all paths; stamps: size, mtime, ctime (ns) and inode (int64 each).
Columns = tuple[list[bytes], bytes, bytes, bytes, bytes]

def build_slots(roots: bytes, ends: bytes, text: bytes) -> bytes:
    """Build the hash table of files for `set_base`: row numbers (int32), -1 for an empty slot.

    The arguments are columns of the files, as in Columns.
    """

class Census:
    """The files of an index, and those that a run finds in its trees."""

    def set_base(self, names: list[bytes], data: bytes, places: Iterable[int]) -> None:
        """Set the first rows, which stay in `data`; rows of `add_rows` replace them.

        `names` are the paths of the roots. `places` are the offsets in `data` at which ends,
        stamps, roots, slots and text start, and the end of the text; slots are a table of
        `build_slots`. `ValueError` if rows were added before, and for columns of different lengths,
        `IndexError` for an invalid root or path.
        """

    def add_rows(
        self, names: list[bytes], roots: bytes, ends: bytes, text: bytes, stamps: bytes, gone: bytes
    ) -> None:
        """Add columns of files; a later row of a file replaces earlier ones.

        `names` are the paths of the roots; `roots` to `stamps` are those of Columns. `gone` has a
        byte for each file that says whether it was removed. `ValueError` for columns of different
        lengths, `IndexError` for an invalid root or path.
        """

    def export_rows(self) -> Columns:
        """Return all files of the index that were not removed, in any order."""

    def walk(
        self, root: bytes, skipped: bytes, largest: int, youngest: int
    ) -> list[tuple[bytes, int]]:
        """Find all files below a root, except in the directory `skipped`.

        Files are regular, or links to regular files, of 1 to `largest` bytes. Files that changed
        after `youngest` (ns) get 0 as times and inode. Returns the directories that could not be
        entered, each with its errno. `MemoryError` if memory is exhausted.
        """

    def find_at(
        self, root: bytes, paths: list[bytes], skipped: bytes, largest: int, youngest: int
    ) -> tuple[list[tuple[bytes, int]], list[bytes]]:
        """Find files at `paths` below a root, and all files in paths that are directories.

        Arguments and first result are those of `walk`. The second list has the paths that are not
        such files: directories, missing paths, files of another type or size. Paths in `skipped`
        are ignored.
        """

    def compare(self) -> Columns:
        """Return the files that were found and are new or changed, once each.

        The files are sorted by the names of their roots and their paths, as also those of
        `find_missing` and `find_missing_at`.
        """

    def files(self) -> list[tuple[bytes, bytes]]:
        """Return root and path of every file of the index or the trees; after `compare` only."""

    def count(self) -> int:
        """Return the number of files of the index or the trees; after `compare` only."""

    def find_missing(self) -> Columns:
        """Return the files of the index that were not found, of all roots; after `compare` only."""

    def find_missing_at(self, roots: list[bytes], paths: list[list[bytes]]) -> Columns:
        """Return the files of the index that were not found, at `paths` of each root or below."""
