"""Finds the directories of many files."""

def directories_of(
    ends: bytes, text: bytes, directory_suffixes: list[bytes]
) -> tuple[list[bytes], list[bool], bytes]:
    """Return the directories of files: (directories, are_containers, numbers).

    Directories are in order of mention, and `numbers` has the number of each file's directory
    (int32). The path of file `i` is from `ends[i]` to `ends[i + 1]` (int64) in the text. A file
    whose name ends in one of `directory_suffixes`, such as an archive, counts as a directory; its
    boolean in `are_containers` is True. `ValueError` and `IndexError` for inconsistent columns.
    """
