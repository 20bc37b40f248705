"""Finds the folders of many files."""

def folders_of(
    ends: bytes, text: bytes, folder_suffixes: list[bytes]
) -> tuple[list[bytes], list[bool], bytes]:
    """The folders of files, in order of mention, and the number of each file's (int32).

    The path of file `i` is from `ends[i]` to `ends[i + 1]` (int64) in the text. A file whose name
    ends in one of `folder_suffixes` counts as a folder of its own; the list of booleans says so.
    `ValueError` and `IndexError` for inconsistent columns.
    """
