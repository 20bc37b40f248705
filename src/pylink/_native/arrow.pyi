"""Columns as an Arrow stream, for libraries that read such streams."""

# Name; Arrow's format, which is `L`, `l`, `g`, `b`, or `i` for codes of texts; values, or codes;
# validity bits, or None without nulls; number of nulls; for codes the offsets (int32) and the bytes
# (UTF-8) of the texts, else None and None. A code is the index of a text.
Column = tuple[bytes, bytes, bytes, bytes | None, int, bytes | None, bytes | None]

def export_stream(rows: int, columns: tuple[Column, ...]) -> object:
    """Return a PyCapsule `arrow_array_stream` with one batch: `rows` rows of `columns`.

    The batch keeps the columns' buffers alive. Validity bits of a byte count from the lowest.
    `ValueError` for columns that do not have a value for each row, for codes without a text, and
    for offsets that do not fit; `KeyError` for another format. Source: the C stream interface and
    the PyCapsule interface of the Arrow specification.
    """
