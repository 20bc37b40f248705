"""The effects of an accepted fold on the tables of a link."""

from pylink._native.tables import MergedTables, Numbers, ObjectTables

def find_stronger(merged: MergedTables, reference: int, candidate: int) -> int:
    """The first symbol row of the candidate whose copy won while the reference's lost; or -1.

    A losing copy loses the relocations of its debug data, too, so the reference's sections could
    not replace the candidate's. `IndexError` for an invalid file number.
    """

def pair_sections(objects: ObjectTables, pairs: bytes) -> Numbers:
    """By section: the one that replaces it, or -1.

    `pairs` are i32 numbers of a candidate and its reference, alternately. Sections that share
    the bytes of a plain section stay. `IndexError` for an invalid file number, `ValueError` if
    the Mercury debug sections of a pair do not correspond one to one.
    """
