"""EIATTR records: .nv.info, .nv.info.F, and their mercury twins.

Records of the inputs are written in reverse order; kernels inherit attributes of the functions they
reach (docs/format-notes.md, "Attributes of kernels").
"""

from pylink._native.results import MergedTables, PlacedTables

def emit_info(placed: PlacedTables, inherited: bytes, closing: bytes) -> list[int]:
    """Make the contents of every information section, and add them to `placed`.

    `inherited` is the packed table of `pylink.facts.inheritance`, `closing` the records with which
    the .nv.info.F of each function ends; its mercury twin does not have them. Returns the entities
    of kernels that use tcgen05 by single CTAs and reach code that uses it by pairs of CTAs, or vice
    versa, in the order of their sections.
    """

def has_file_records(merged: MergedTables) -> bool:
    """Return whether .nv.info of the output has any record. nvlink omits an empty section."""
