"""Notes and compatibility attributes: one section of the output from all those of the inputs."""

from pylink._native.tables import MergedTables, ObjectTables

def join_notes(objects: ObjectTables) -> bytes:
    """The bytes of the .note.nv.tkinfo of all inputs, one after the other."""

def virtual_archs(objects: ObjectTables) -> tuple[int, int, int, int, int]:
    """The SM numbers of the PTX that inputs were made from, as the reader found them: the extremes.

    (lowest, first file with it, files with it, highest, first file with it); files are -1 where
    none says.
    """

def has_attribute(objects: ObjectTables, attribute: int) -> bool:
    """Whether the .nv.info of any input has an EIATTR record with that attribute."""

def fastpath_bits(merged: MergedTables) -> int:
    """The bits of attribute 0x0b that the code of the output keeps, whatever its files say."""

def merge_compat(
    objects: ObjectTables, rows: bytes, arch_specific: bool, features: int, fastpath: int
) -> bytes:
    """The attributes of .nv.compat, merged over all inputs by `rows` (`pylink.facts.compat`).

    Attribute 9 depends on the target; 0x0b are the bits that all inputs with code have and those of
    `fastpath`, as far as the target has them (`features`). Order and formats are those of the first
    input, after it what later ones add. Source: experiments, in docs/format-notes.md.
    """
