"""The files of build trees beside what an index knows of them: who is new, changed or gone."""

from collections.abc import Sequence

# Root, path below it, and size, mtime, ctime (ns) and inode.
Row = tuple[bytes, bytes, tuple[int, int, int, int]]

class Census:
    """What an index knows of trees, and what is in them."""

    def know(
        self,
        names: list[bytes],
        roots: bytes,
        offsets: bytes,
        text: bytes,
        stamps: bytes,
        gone: bytes,
    ) -> None:
        """Take rows of files, of which a later one for a file counts.

        ``roots`` has the number of its root in ``names`` for each (int32), ``offsets`` where its
        path begins in ``text`` (int32, and one more for the last one's end), ``stamps`` its size,
        mtime, ctime and inode (int64 each), ``gone`` a byte that says whether it is not there any
        more. ``ValueError`` for columns of different lengths, ``IndexError`` for a number or a
        path that is in none.
        """

    def known(self) -> tuple[list[bytes], bytes, bytes, bytes, bytes, bytes]:
        """What ``know`` takes, of all files that are known to be there.

        ``OverflowError`` when their paths have more than 2 GiB.
        """

    def known_roots(self) -> list[bytes]:
        """The roots below which files are known, in order of mention."""

    def walk(
        self, roots: Sequence[bytes], skipped: bytes, largest: int, youngest: int
    ) -> list[tuple[bytes, int]]:
        """Look at all files below the roots, but not in the folder ``skipped``.

        Files are regular, or links to such, and have 1 to ``largest`` bytes; of one that changed
        after ``youngest`` (ns) the times and the inode are 0. Returns the folders that could not be
        entered, each with its errno. ``MemoryError`` when there is none.
        """

    def look(
        self, root: bytes, paths: list[bytes], skipped: bytes, largest: int, youngest: int
    ) -> tuple[list[tuple[bytes, int]], list[bytes]]:
        """Look at files below a root, and at all files in those that are folders.

        Otherwise as ``walk``. Returns also the paths that are no files: folders, and what is not
        there or is passed over.
        """

    def compare(self) -> list[Row]:
        """Each file that was found and is not known as it is, once, in any order."""

    def files(self) -> list[tuple[bytes, bytes]]:
        """After ``compare``: root and path of every file that is known or was found."""

    def count(self) -> int:
        """After ``compare``: how many these are."""

    def unseen(self) -> list[Row]:
        """After ``compare``: what is known, below whatever root, and was not found."""

    def unseen_of(self, root: bytes, paths: list[bytes]) -> list[Row]:
        """Of these the files below ``root`` that are one of ``paths``, or in such a folder."""
