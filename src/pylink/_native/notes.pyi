"""Notes and compatibility attributes: one output section from all input sections of a kind."""

from pylink._native.results import MergedTables, ObjectTables
from pylink._native.tables import Blob

class VirtualArchs:
    """The lowest and highest SM number of the PTX that inputs were compiled from.

    `lowest_file` is the first file with the lowest number, `lowest_count` the number of files that
    have it; `highest_file` is the first file with the highest number. If no input states a number,
    both files are -1 and all else is 0.
    """

    lowest: int
    lowest_file: int
    lowest_count: int
    highest: int
    highest_file: int

def join_notes(objects: ObjectTables, first: bytes) -> Blob:
    """Return `first`, followed by the bytes of the .note.nv.tkinfo of all inputs."""

def find_virtual_archs(objects: ObjectTables) -> VirtualArchs:
    """Find the lowest and highest SM number of the PTX that inputs were compiled from."""

def has_attribute(objects: ObjectTables, attribute: int) -> bool:
    """Return whether the .nv.info of any input has an EIATTR record with that attribute."""

def fastpath_bits(merged: MergedTables) -> int:
    """Return the bits of CAN_FASTPATH_FINALIZE that the output has because of its code: 8 or 0.

    They are 0 if linked code has an instruction that keeps it off the fast path of nvlink's
    finalizer, and the CAN_FASTPATH_FINALIZE of its file lacks the bit 8.
    """

def merge_compat(
    objects: ObjectTables, rows: bytes, *, arch_specific: bool, features: int, fastpath: int
) -> bytes:
    """Return the records of .nv.compat, joined over all inputs by rows of `pylink.facts.compat`.

    Attribute 9 says whether the target's name ends in `a` (`arch_specific`). Attribute 0x0b has the
    bits that all inputs with code have, and those of `fastpath`, limited to the target's
    `features`. Order and formats are those of the first input, followed by attributes that later
    ones add. Source: experiments, in docs/format-notes.md.
    """
