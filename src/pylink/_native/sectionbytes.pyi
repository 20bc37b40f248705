"""Counts the bytes of one cubin by section. Parts are numbers of `pylink.size.model.PARTS`."""

from typing_extensions import Buffer

def section_bytes(cubin: Buffer) -> list[tuple[int, int, int]]:
    """The section and part of all bytes of a cubin, in order, as `Ledger.measure` counts them.

    Rows are (section, part, bytes), the section -1 for headers and padding; they add up to the
    cubin. ValueError for other files, and for sections outside of the file.
    """
