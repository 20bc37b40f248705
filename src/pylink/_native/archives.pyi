"""The members of archives: where they lie, their names, and what each of them is."""

from mmap import mmap

def list_members(
    data: bytes | mmap, start: int, size: int, most: int, seen: tuple[int, int, int] | tuple[()]
) -> tuple[bytes, tuple[int, int, int] | None, tuple[int, int, int, int] | None]:
    """The next members, at most ``most``, of the archive at ``start``: (rows, seen, fault).

    ``seen`` is what the call before gave, an empty tuple at first; the one given is None when there
    are no more members. Rows are those of ``pylink.inputs.archiveformat``, which also has the words
    for a fault: its reason, the offset of the header in the archive, and two numbers. Every name,
    and in an archive that is not thin all contents, lie inside the archive. ``IndexError`` for an
    archive that runs past the data, or has no room for its magic word.
    """

def split_rows(data: bytes, rows: bytes, prefix: str) -> tuple[list[str], bytes, bytes, bytes]:
    """What rows of members say, in columns: (names, kinds, extents, inline).

    Names stand after ``prefix``. ``kinds`` has a byte of ``pylink.inputs.kinds`` each, which means
    nothing in a thin archive, ``extents`` a row (offset u64, size u64), ``inline`` a byte that says
    whether the name stands before the contents. ``IndexError`` for a name outside ``data``.
    """
