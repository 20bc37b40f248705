"""Finds device code in a file by its marks: the bytes that cubins and containers begin with."""

from typing_extensions import Buffer

def find_marks(data: Buffer, marks: tuple[bytes, ...]) -> list[tuple[int, int]]:
    """Return offset and number of each mark in a buffer, in order; `marks` has one or two texts.

    The number is the index in `marks`. A mark has two bytes or more.
    """
