"""Finds device code in a file by its marks: the bytes that cubins and containers begin with."""

from typing_extensions import Buffer

def find_marks(data: Buffer, marks: tuple[bytes, ...]) -> list[tuple[int, int]]:
    """Return the offsets of one or two marks in a buffer, in order, each with its mark's number.

    A mark has two bytes or more.
    """
