"""Columns of numbers and text as pages of a Parquet file, without headers."""

# The dictionary page or None, the number of its values (0 for None), and the data page.
Pages = tuple[bytes | None, int, bytes]
# A column of texts: the number (int32) of each row's text in a dictionary, the `ends` of the texts
# in that dictionary (int64, offsets in bytes), and the texts, joined.
Words = tuple[bytes, bytes, bytes]

def number_pages(values: bytes, width: int, valid: bytes | None = None) -> Pages:
    """Return Parquet pages of values of `width` bytes (4, 8, 16); 0 in `valid` marks a null row.

    `ValueError` for another width, and if `valid` does not have a byte for each value.
    """

def flag_pages(flags: bytes) -> Pages:
    """Return Parquet pages of booleans; `flags` has a byte for each, 0 for False."""

def text_pages(ends: bytes, text: bytes, numbers: bytes | None = None) -> Pages:
    """Return Parquet pages of texts: text `i` is `text` from `ends[i]` to `ends[i + 1]` (int64).

    With `numbers` (int32) these texts are a dictionary, and a row has the number of its text, -1
    for null. `ValueError` and `IndexError` for inconsistent columns.
    """

def join_words(pieces: list[Words]) -> Words:
    """Concatenate columns of texts, each with its dictionary, to one with one dictionary.

    The common dictionary has each text once, in order of first mention. `ValueError` and
    `IndexError` for inconsistent columns.
    """
