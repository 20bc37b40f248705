"""Counts the bytes of one cubin by section. Parts are numbers of `pylink.size.model.PARTS`."""

from typing import TypeAlias

from typing_extensions import Buffer

# The index of the section, -1 for headers and padding; the part, a number of
# `pylink.size.model.PARTS`, such as that of code; and the number of bytes.
SectionBytes: TypeAlias = tuple[int, int, int]

def section_bytes(cubin: Buffer) -> list[SectionBytes]:
    """List (section, part, number of bytes) for each range of a cubin, in the order of offsets.

    Parts are those that `Ledger.measure` counts. The numbers of bytes add up to the file's size.
    ValueError for other files, and for sections outside of the file.
    """
