"""The members of archives: their offsets, names and kinds."""

from mmap import mmap

def list_members(
    data: bytes | mmap, start: int, size: int, most: int, seen: tuple[int, int, int] | tuple[()]
) -> tuple[bytes, tuple[int, int, int] | None, tuple[int, int, int, int] | None]:
    """The next members, at most `most`, of the archive at `start`: (rows, seen, fault).

    Pass an empty tuple as `seen` at first, then the result of the previous call, until None
    is returned after the last member. `pylink.inputs.archiveformat` describes the rows, and the
    faults: reason, offset of the header in the archive, and two numbers. Names, and contents
    unless the archive is thin, are inside the archive. `IndexError` for an archive that runs past
    the data, or is shorter than its magic word.
    """

def split_rows(data: bytes, rows: bytes, prefix: str) -> tuple[list[str], bytes, bytes, bytes]:
    """Split rows of members into columns: (names, kinds, extents, inline).

    Names start with `prefix`. `kinds` has a byte of `pylink.facts.inputkinds` each
    (meaningless in a thin archive), `extents` a row (offset u64, size u64), `inline` a byte that
    says whether the name is in front of the contents. `IndexError` for a name outside `data`.
    """
