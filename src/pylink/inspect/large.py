"""Cubins whose contents fill more than a person reads: how many rows each part of one has."""

from __future__ import annotations

from pylink.inspect import contents
from pylink.inspect.image import Image, is_relocations

# Rows of a cubin up to which all of it is shown.
MOST_ROWS = 5000

# Bytes of a row of a table, of records and notes of one as most have them.
_SYMBOL, _RELOCATION, _RECORD, _CALL = 24, 16, 8, 8


def row_counts(image: Image) -> dict[str, int]:
    """About how many rows each part has, by the sizes of sections: none of them is decoded."""
    counts = {"sections": len(image.sections), "symbols": 0, "relocs": 0, "info": 0, "callgraph": 0}
    for section in image.sections:
        if section.name in contents.SYMBOL_TABLES:
            counts["symbols"] += section.file_size // _SYMBOL
        elif is_relocations(section):
            counts["relocs"] += section.file_size // (section.entsize or _RELOCATION)
        elif contents.is_records(section):
            counts["info"] += section.file_size // _RECORD
        elif section.name == ".nv.callgraph":
            counts["callgraph"] += section.file_size // _CALL
    return counts
