"""Finds equal sections across a whole build, at any position."""

Payload = bytes | memoryview

class Twins:
    """Equal rows, and the work that finding them took.

    `leaders` has for each row the first row that is equal to it (packed int64). `comparisons` is
    the number of pairs of buffers compared (those of different lengths are not), `bytes_compared`
    the sum of their bytes up to and with the first difference.
    """

    leaders: bytes
    comparisons: int
    bytes_compared: int

def find_twins(sections: list[Payload], relocations: list[Payload], keys: list[int]) -> Twins:
    """Find, for each row, the first row that is equal to it.

    Each argument has an element for each row. Rows are equal if their keys (uint64), the bytes of
    their sections and those of their relocation sections are. A row takes one look-up, and a
    comparison with each distinct row of its key. So keys should be equal only for equal names,
    sizes and digests. Raises ValueError if the columns differ in length, OverflowError for a key
    that does not fit.
    """
