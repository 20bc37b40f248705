"""Writes the module with the formats of rows that native code and Python exchange as bytes.

python -m pylink.facts.rowformats src/_native > src/pylink/rowformats.py
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from pylink.facts.header import STRUCT_CODES

HEAD = '''\
"""Formats of rows that native code exchanges as bytes; made by `pylink.facts.rowformats`."""

from __future__ import annotations

from struct import Struct

'''
# The name of each format, the native source with the struct of the row, and that struct.
ROWS = (
    ("ENTRY", "inputs/fatbinrows.pxd", "EntryRow"),
    ("SOURCE", "inputs/fatbinrows.pxd", "SourceRow"),
    ("FAULT", "inputs/fatbinrows.pxd", "FaultRow"),
    ("PICK", "inputs/picks.pxd", "PickRow"),
    ("DYNAMIC", "inputs/sharedlibs.pyx", "DynamicRow"),
    ("MOVED", "debug/rows.pxd", "MovedRow"),
    ("TIME", "base/clocks.pxd", "TimeRow"),
    ("FILE_COUNT", "reports/counts.pyx", "FileCount"),
    ("KIND_COUNT", "reports/counts.pyx", "KindCount"),
)


def _struct_format(native: Path, file: str, row: str) -> str:
    """Return the format, for Python's struct, of the packed struct `row`, with structs inside it.

    `file` is the source that defines it, below the directory `native`.
    """
    text = re.sub(r"#.*", "", (native / file).read_text(encoding="utf-8"))
    (body,) = re.findall(rf"packed struct {row}:\n((?:[ \t]+.*\n|\n)+)", text)
    fields = re.findall(r"^ +(\w+) \w+(?:\[(\d+)\])?\s*$", body, re.MULTILINE)
    codes = [(STRUCT_CODES.get(kind) or _struct_format(native, file, kind)) for kind, _ in fields]
    return "".join(code * int(count or 1) for code, (_, count) in zip(codes, fields, strict=True))


def module_text(native: Path) -> str:
    """Return the text of rowformats.py; `native` is the directory of the native sources."""
    lines = [
        f'# {row} of {file}.\n{name} = Struct("<{_struct_format(native, file, row)}")\n'
        for name, file, row in ROWS
    ]
    return HEAD + "".join(lines)


if __name__ == "__main__":
    sys.stdout.write(module_text(Path(sys.argv[1])))
