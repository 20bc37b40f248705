"""Columns as an Arrow stream, for libraries that read such streams."""

# Name; Arrow's format `L`, `l`, `g`, `b`, or `i` for codes; values; validity bits, or None; number
# of nulls; offsets (int32) and bytes (UTF-8) of the texts of codes.
Column = tuple[bytes, bytes, bytes, bytes | None, int, bytes | None, bytes | None]

def export_stream(rows: int, columns: tuple[Column, ...]) -> object:
    """Return a capsule named `arrow_array_stream` with one batch of `rows` rows.

    The batch keeps the columns' buffers alive. Validity bits of a byte count from the lowest.
    `ValueError` for columns that do not have a value for each row, for codes without a text, and
    for offsets that do not fit; `KeyError` for another format. Source: the C stream interface and
    the PyCapsule interface of the Arrow specification.
    """
