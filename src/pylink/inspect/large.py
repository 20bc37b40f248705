"""Estimates the rows of each part of a cubin, since large cubins are not listed in full."""

from __future__ import annotations

from pylink.inspect import contents
from pylink.inspect.image import Image, is_relocations

# Limit of rows up to which all parts of a cubin are listed.
MOST_ROWS = 5000

# Bytes of a row of each table, and the usual number of bytes of a record.
_SYMBOL_SIZE, _RELOCATION_SIZE, _RECORD_SIZE, _CALL_SIZE = 24, 16, 8, 8


def row_counts(image: Image) -> dict[str, int]:
    """Return the approximate number of rows of each part, from section sizes, without decoding."""
    counts = {"sections": len(image.sections), "symbols": 0, "relocs": 0, "info": 0, "callgraph": 0}
    for section in image.sections:
        if section.name in contents.SYMBOL_TABLES:
            counts["symbols"] += section.file_size // _SYMBOL_SIZE
        elif is_relocations(section):
            counts["relocs"] += section.file_size // (section.entsize or _RELOCATION_SIZE)
        elif contents.is_records(section):
            counts["info"] += section.file_size // _RECORD_SIZE
        elif section.name == ".nv.callgraph":
            counts["callgraph"] += section.file_size // _CALL_SIZE
    return counts
