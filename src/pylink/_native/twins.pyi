"""Finds equal sections across a whole build, at any position."""

Payload = bytes | memoryview

class Twins:
    """The first row equal to each row (packed int64), and the work that this took."""

    leaders: bytes
    comparisons: int
    bytes_compared: int

def find_twins(sections: list[Payload], relocations: list[Payload], keys: list[int]) -> Twins:
    """Find the first row that each row is equal to.

    Rows are equal when their keys (uint64), their section's bytes and the bytes of its relocation
    section are. A row of N costs one look-up and a comparison per distinct row of its key: equal
    keys should mean equal names, sizes and digests. Raises ValueError when the columns differ in
    length, OverflowError for a key that does not fit.
    """
