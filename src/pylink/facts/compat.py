"""Rules that join the attributes of .nv.compat of all inputs for the output.

A row is the rule for one attribute, from a release on and for some families. `pack_rows` packs the
rows of a link for `pylink._native.notes`. An attribute without a row has the value of the first
input with it. Inputs without .nv.compat do not count. The experiments are in docs/format-notes.md
and docs/format-notes/releases.md.
"""

from __future__ import annotations

from pylink.facts.attributes import BVAL, HVAL, SVAL
from pylink.facts.target import FAMILY_B, FAMILY_C

# Rules that join the values of all inputs, or that give the value of the output.
COMPAT_FIRST = 0  # the value of the first input that has it
COMPAT_WEAKEST = 1  # 0 if any input has 0, else the largest
COMPAT_FLAGS = 2  # bits that any input has
COMPAT_FIELDS = 3  # like COMPAT_WEAKEST, for each of two fields of two bits
COMPAT_EQUAL = 4  # the value if all inputs agree, else 1
COMPAT_LARGEST = 5  # the largest value
COMPAT_COMMON = 6  # bits that all inputs with code have
COMPAT_TARGET = 7  # 1 if the target's name ends in `a`, else 0
COMPAT_FIXED = 8  # the row's value

# Bits of `CompatRow.flags`: further rules of the attribute.
COMPAT_DROPPED = 1  # omitted from the output
# An input without the attribute counts as if it had the row's value or, for COMPAT_COMMON, all
# bits: with code, all except FASTPATH_CODE.
COMPAT_COUNTS = 2
COMPAT_REQUIRED = 4  # omitted if an input lacks it or has the value for unknown (0xffff)
COMPAT_LATE = 8  # follows all others, in the order of the rows, unless the first input has it

FASTPATH_CODE = 0x08  # the bit of CAN_FASTPATH_FINALIZE that depends on the instructions


class CompatRow:
    """A rule for one attribute in links for `families` that follow toolkit `since` or a later one.

    `since` is a number such as 131 for 13.1. `join` is the rule that joins values: one of the
    numbers from COMPAT_FIRST to COMPAT_FIXED. `flags` are bits from COMPAT_DROPPED to COMPAT_LATE,
    `value` is that of COMPAT_FIXED and COMPAT_COUNTS. `format`, the argument `form`, is that of the
    record, such as BVAL.
    """

    __slots__ = ("attribute", "families", "flags", "format", "join", "since", "value")

    def __init__(
        self,
        attribute: int,
        form: int,
        join: int,
        flags: int = 0,
        value: int = 0,
        *,
        since: int = 0,
        families: tuple[int, ...] = (FAMILY_B, FAMILY_C),
    ) -> None:
        self.attribute = attribute
        self.format = form
        self.join = join
        self.flags = flags
        self.value = value
        self.since = since
        self.families = families


_B, _C = (FAMILY_B,), (FAMILY_C,)
# Several rows of an attribute may match the toolkit and the family: the last of them counts.
ROWS = (
    CompatRow(0x09, BVAL, COMPAT_TARGET, since=130),
    CompatRow(0x02, BVAL, COMPAT_WEAKEST, COMPAT_COUNTS | COMPAT_LATE, 0),
    CompatRow(0x03, BVAL, COMPAT_FLAGS, COMPAT_COUNTS | COMPAT_LATE, 3),
    CompatRow(0x05, BVAL, COMPAT_FIELDS, COMPAT_COUNTS | COMPAT_LATE, 0),
    CompatRow(0x05, BVAL, COMPAT_FIELDS, COMPAT_REQUIRED, since=131),
    CompatRow(0x06, BVAL, COMPAT_EQUAL, COMPAT_COUNTS | COMPAT_LATE, 1),
    CompatRow(0x06, BVAL, COMPAT_EQUAL, COMPAT_DROPPED, since=131),
    CompatRow(0x07, HVAL, COMPAT_LARGEST, COMPAT_COUNTS | COMPAT_LATE, 0x100, since=130),
    CompatRow(0x07, HVAL, COMPAT_LARGEST, COMPAT_LATE, since=133),
    CompatRow(0x0C, BVAL, COMPAT_LARGEST, COMPAT_COUNTS | COMPAT_LATE, 2, since=134),
    CompatRow(0x0D, HVAL, COMPAT_LARGEST, COMPAT_COUNTS | COMPAT_LATE, 0x100, since=133),
    CompatRow(0x0B, SVAL, COMPAT_COMMON, COMPAT_DROPPED, since=130, families=_B),
    CompatRow(0x0B, SVAL, COMPAT_COMMON, COMPAT_LATE, since=132, families=_B),
    CompatRow(0x0B, SVAL, COMPAT_COMMON, COMPAT_COUNTS | COMPAT_LATE, since=130, families=_C),
    CompatRow(0x0E, HVAL, COMPAT_LARGEST, COMPAT_REQUIRED | COMPAT_LATE, since=134, families=_B),
    CompatRow(0x0E, HVAL, COMPAT_FIXED, COMPAT_COUNTS | COMPAT_LATE, 0x400, since=134, families=_C),
    CompatRow(0x0E, HVAL, COMPAT_FIXED, COMPAT_COUNTS | COMPAT_LATE, 0x440, since=135, families=_C),
)


def pack_rows(toolkit: int, family: int) -> bytes:
    """Return the packed rows for a toolkit, such as 131, and a family.

    In a packed row, attribute, format, join and flags have a byte each, the value has 16 bits.
    """
    rows = {row.attribute: row for row in ROWS if row.since <= toolkit and family in row.families}
    return b"".join(
        bytes((row.attribute, row.format, row.join, row.flags)) + row.value.to_bytes(2, "little")
        for row in rows.values()
    )
