"""What an accepted fold means for the tables of a link."""

from pylink._native.tables import MergedTables, Numbers, ObjectTables

def find_stronger(merged: MergedTables, reference: int, candidate: int) -> int:
    """The first symbol row of the candidate whose function copy counts while the reference's lost.

    A copy that lost loses the relocations of its debug data, too, so that the reference's sections
    could not stand for it. -1 when there is none. ``IndexError`` for a file that is not there.
    """

def pair_sections(objects: ObjectTables, pairs: bytes) -> Numbers:
    """By section: the one that stands for it, or -1.

    ``pairs`` are i32 numbers of a candidate and its reference, alternately. Sections that share
    the bytes of a plain section stay. ``IndexError`` for a file that is not there, ``ValueError``
    when the Mercury debug sections of a pair do not correspond one to one.
    """
