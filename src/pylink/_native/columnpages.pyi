"""Columns of numbers and of text as pages of a Parquet file, without what is around them."""

# A dictionary's page or None, how many values are in that, and the page of data.
Pages = tuple[bytes | None, int, bytes]

def number_pages(values: bytes, width: int, valid: bytes | None = None) -> Pages:
    """Values of ``width`` bytes, 4, 8 or 16, each; those with a 0 in ``valid`` are none.

    ``ValueError`` for another width, and when there is not a byte of ``valid`` for each.
    """

def flag_pages(flags: bytes) -> Pages:
    """Truth values, a byte each."""

def text_pages(ends: bytes, text: bytes, numbers: bytes | None = None) -> Pages:
    """Text: value ``i`` is that from ``ends[i]`` to ``ends[i + 1]`` (int64).

    With ``numbers`` (int32) these are a dictionary, and the number of a row is that of its value,
    -1 for none. ``ValueError`` and ``IndexError`` for columns that do not fit together.
    """

def join_words(pieces: list[tuple[bytes, bytes, bytes]]) -> tuple[bytes, bytes, bytes]:
    """One after the other: numbers (int32) of dictionaries, each with ``ends`` and ``text``.

    The dictionary of all has each value once, in order of mention. ``ValueError`` and
    ``IndexError`` as above.
    """
