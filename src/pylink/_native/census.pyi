"""The files of build trees beside what an index knows of them: which are new, changed or gone."""

from collections.abc import Iterable

# Files: roots, the number among these of each file's (int32); where its path below that ends in the
# text of all (int64, with a 0 in front); its size, mtime, ctime (ns) and inode (int64 each).
Columns = tuple[list[bytes], bytes, bytes, bytes, bytes]

def slots_of(roots: bytes, ends: bytes, text: bytes) -> bytes:
    """A table by which to find each of these files: row numbers (int32) by a hash, -1 for none."""

class Census:
    """What an index knows of trees, and what is in them."""

    def rest_on(
        self,
        names: list[bytes],
        data: bytes,
        places: Iterable[int],
    ) -> None:
        """Take rows that lie in ``data``, as the first; what `know` takes counts more.

        ``places`` are where ends, stamps, roots, slots and text begin, one after the other, and
        where the last of them ends; slots are those of ``slots_of``. ``ValueError`` when something
        is known already, and for columns of different lengths, ``IndexError`` for a root or a path
        that is in none.
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
        """Take columns of files, of which a later row for a file counts.

        ``gone`` is a byte for each that says whether it is not there any more. ``ValueError`` for
        columns of different lengths, ``IndexError`` for a number or a path that is in none.
        """

    def known(self) -> Columns:
        """All files that are known to be there, in any order."""

    def walk(
        self, root: bytes, skipped: bytes, largest: int, youngest: int
    ) -> list[tuple[bytes, int]]:
        """Look at all files below a root, but not in the folder ``skipped``.

        Files are regular, or links to such, and have 1 to ``largest`` bytes; of one that changed
        after ``youngest`` (ns) the times and the inode are 0. Returns the folders that could not be
        entered, each with its errno. ``MemoryError`` when there is none.
        """

    def look(
        self, root: bytes, paths: list[bytes], skipped: bytes, largest: int, youngest: int
    ) -> tuple[list[tuple[bytes, int]], list[bytes]]:
        """Look at files below a root, and at all files in those that are folders.

        Otherwise as ``walk``. Returns also the paths that are not files: folders, and what is not
        there or is skipped.
        """

    def compare(self) -> Columns:
        """Each file that was found and is not known as it is, once.

        Here and below files come in the order of their roots' names and of their paths.
        """

    def files(self) -> list[tuple[bytes, bytes]]:
        """After ``compare``: root and path of every file that is known or was found."""

    def count(self) -> int:
        """After ``compare``: how many these are."""

    def unseen(self) -> Columns:
        """After ``compare``: what is known, below whatever root, and was not found."""

    def unseen_of(self, roots: list[bytes], paths: list[list[bytes]]) -> Columns:
        """Like `unseen`, for files at these ``paths`` of each root or in folders at them."""
