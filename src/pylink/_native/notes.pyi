"""Notes and compatibility attributes: one output section from all input sections of a kind."""

from typing import TypeAlias

from pylink._native.tables import MergedTables, ObjectTables

# The lowest SM number, the first file with it and how many have it; the highest SM number and the
# first file with it. Files are -1 if no input states a number.
VirtualArchs: TypeAlias = tuple[int, int, int, int, int]

def join_notes(objects: ObjectTables) -> bytes:
    """The bytes of the .note.nv.tkinfo of all inputs, one after the other."""

def virtual_archs(objects: ObjectTables) -> VirtualArchs:
    """The lowest and highest SM number of the PTX that inputs were compiled from."""

def has_attribute(objects: ObjectTables, attribute: int) -> bool:
    """Return whether the .nv.info of any input has an EIATTR record with that attribute."""

def fastpath_bits(merged: MergedTables) -> int:
    """The bits of attribute 0x0b that the code of the output has, regardless of its files."""

def merge_compat(
    objects: ObjectTables, rows: bytes, *, arch_specific: bool, features: int, fastpath: int
) -> bytes:
    """The attributes of .nv.compat, merged over all inputs by `rows` (`pylink.facts.compat`).

    Attribute 9 depends on the target. Attribute 0x0b has the bits that all inputs with code have,
    and those of `fastpath`, limited to the target's `features`. Order and formats are those of the
    first input, followed by attributes that later ones add. Source: experiments, in
    docs/format-notes.md.
    """
