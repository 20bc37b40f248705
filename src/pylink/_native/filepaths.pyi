"""In which folder each of many files is."""

def folders_of(ends: bytes, text: bytes, own: list[bytes]) -> tuple[list[bytes], list[bool], bytes]:
    """The folders of files, in order of mention, and the number of each file's (int32).

    The path of file ``i`` is that from ``ends[i]`` to ``ends[i + 1]`` (int64) of the text. A file
    whose name ends in one of ``own`` stands in place of a folder, which the list of truth values
    says. ``ValueError`` and ``IndexError`` for columns that do not fit together.
    """
