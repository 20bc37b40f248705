"""EIATTR records: .nv.info, .nv.info.F, and their mercury twins.

Records of the inputs are kept in reverse order; kernels take over what the functions they reach
need (docs/format-notes.md, "Attributes of kernels"). Tables are packed rows of ``rows.pxd``.
"""

from pylink._native.tables import MergedTables, PlacedTables

def emit_info(placed: PlacedTables, inherited: bytes, closing: bytes) -> list[int]:
    """Contents of every information section, added to those that the link makes.

    `inherited` is the packed table of `pylink.facts.inheritance`, `closing` the records that end
    those of each function. Returns the entities of kernels that reach functions for one CTA and
    for a pair of them.
    """

def has_file_records(merged: MergedTables) -> bool:
    """Whether .nv.info of the output has any record; nvlink omits an empty one."""
