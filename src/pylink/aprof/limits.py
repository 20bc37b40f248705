"""The limits of numbers in a report, and the columns of a point in each version."""

from __future__ import annotations

# Limits of numbers that are read, and (MAX_WRITTEN) smaller ones of numbers that are written: other
# readers keep ids in 32 bits and use them as indices, and keep `COUNTS` as signed 64-bit numbers.
MAX_ID = (1 << 32) - 1
MAX_WRITTEN_ID = (1 << 31) - 1
MAX_COUNT = (1 << 64) - 1
MAX_WRITTEN_COUNT = (1 << 63) - 1
MAX_COST = (1 << 64) - 1

# The metrics of input sizes.
INPUT_METRICS = ("rms", "drms", "rvms")

# Columns of versions 0 and 1, and those of version 2, with which the ones of version 3 begin.
_OLD = ("rms", "min", "max", "sum", "sqr", "occ")
_SELF = ("rms", "min", "max", "sum", "occ", "real", "self_sum")
# Columns of p and q lines (points of routines and of contexts) after the id, by version. A column
# that a version lacks is 0, except `real`, which is `sum`.
COLUMNS = {
    0: _OLD,
    1: _OLD,
    2: _SELF,
    3: (*_SELF, "self_min", "self_max"),
    4: (*_OLD, "real", "self_sum", "self_min", "self_max", "self_sqr"),
}
NEWEST = max(COLUMNS)

# Columns with sums of squares. If a sum needs more than 64 bits, MAX_COST is written.
SQUARES = ("sqr", "self_sqr")
MAX_SQUARE = MAX_COST**3  # limit in memory: MAX_COUNT (= MAX_COST) squares of costs

# Columns that other readers keep as signed 64-bit numbers: sizes, numbers of calls, least and
# largest costs. Written ones are at most MAX_WRITTEN_COUNT.
COUNTS = ("rms", "min", "max", "occ", "self_min", "self_max")


def columns(version: int) -> tuple[str, ...]:
    """Return the columns of a version; what versions after 4 add at the end is not read."""
    return COLUMNS[min(version, NEWEST)]
