"""Columns of numbers and text as pages of a Parquet file, without headers."""

# The dictionary page or None, its number of values, and the data page.
Pages = tuple[bytes | None, int, bytes]
# Numbers (int32) of the values of a dictionary, and its `ends` (int64, offsets in bytes) and text.
Words = tuple[bytes, bytes, bytes]

def number_pages(values: bytes, width: int, valid: bytes | None = None) -> Pages:
    """Pages of values of `width` bytes (4, 8 or 16); a 0 in `valid` marks a null.

    `ValueError` for another width, and if `valid` does not have a byte for each value.
    """

def flag_pages(flags: bytes) -> Pages:
    """Pages of booleans, a byte each."""

def text_pages(ends: bytes, text: bytes, numbers: bytes | None = None) -> Pages:
    """Pages of texts: value `i` is from `ends[i]` to `ends[i + 1]` (int64).

    With `numbers` (int32) these are a dictionary, and rows have the numbers of their values, -1
    for null. `ValueError` and `IndexError` for inconsistent columns.
    """

def join_words(pieces: list[Words]) -> Words:
    """Concatenate columns.

    The common dictionary has each value once, in order of first use. `ValueError` and
    `IndexError` like `text_pages`.
    """
