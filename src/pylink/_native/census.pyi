"""Compares the files of build trees with an index: finds new, changed and removed files."""

from collections.abc import Iterable

# Columns of files: roots; number of each file's root (int32); end of its path in the text (int64,
# with a 0 in front); text of all paths; size, mtime, ctime (ns) and inode (int64 each).
Columns = tuple[list[bytes], bytes, bytes, bytes, bytes]

def slots_of(roots: bytes, ends: bytes, text: bytes) -> bytes:
    """A hash table of files: row numbers (int32), -1 for an empty slot."""

class Census:
    """The files of an index, and of its trees."""

    def rest_on(
        self,
        names: list[bytes],
        data: bytes,
        places: Iterable[int],
    ) -> None:
        """Set the first rows, which stay in `data`; later rows of `know` replace them.

        `places` are the start offsets of ends, stamps, roots, slots and text, and the end of the
        text; slots are a table of `slots_of`. `ValueError` if rows were added before, and for
        columns of different lengths, `IndexError` for an invalid root or path.
        """

    def know(
        self,
        names: list[bytes],
        roots: bytes,
        ends: bytes,
        text: bytes,
        stamps: bytes,
        gone: bytes,
    ) -> None:
        """Add columns of files; a later row of a file replaces earlier ones.

        `gone` has a byte for each file that says whether it was removed. `ValueError` for columns
        of different lengths, `IndexError` for an invalid root or path.
        """

    def known(self) -> Columns:
        """All files of the index that were not removed, in any order."""

    def walk(
        self, root: bytes, skipped: bytes, largest: int, youngest: int
    ) -> list[tuple[bytes, int]]:
        """Find all files below a root, except in the folder `skipped`.

        Files are regular, or links to regular files, of 1 to `largest` bytes. Files that changed
        after `youngest` (ns) get 0 as times and inode. Returns the folders that could not be
        entered, each with its errno. `MemoryError` if memory is exhausted.
        """

    def look(
        self, root: bytes, paths: list[bytes], skipped: bytes, largest: int, youngest: int
    ) -> tuple[list[tuple[bytes, int]], list[bytes]]:
        """Find files at `paths` below a root, and all files in paths that are folders.

        Otherwise like `walk`. Also returns the paths that are not files: folders, missing and
        skipped ones.
        """

    def compare(self) -> Columns:
        """The files that were found and are new or changed, once each.

        Here and below, files are in order of their roots' names and their paths.
        """

    def files(self) -> list[tuple[bytes, bytes]]:
        """After `compare`: root and path of every file of the index or the trees."""

    def count(self) -> int:
        """After `compare`: the number of these files."""

    def unseen(self) -> Columns:
        """After `compare`: the files of the index, below any root, that were not found."""

    def unseen_of(self, roots: list[bytes], paths: list[list[bytes]]) -> Columns:
        """Like `unseen`, for files at these `paths` of each root or in folders at them."""
