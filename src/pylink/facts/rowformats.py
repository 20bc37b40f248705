"""Writes the module with the formats of rows that native code exchanges as bytes.

python -m pylink.facts.rowformats src/_native > src/pylink/rowformats.py
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from pylink.facts.header import CODES

HEAD = '''\
"""The formats of rows that kernels exchange as bytes; made by `pylink.facts.rowformats`."""

from __future__ import annotations

from struct import Struct

'''
# The name of each format, the file of the row and the row.
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


def columns(native: Path, file: str, row: str) -> str:
    """The struct codes of a packed struct, including those of the structs inside it."""
    text = re.sub(r"#.*", "", (native / file).read_text(encoding="utf-8"))
    (body,) = re.findall(rf"packed struct {row}:\n((?:[ \t]+.*\n|\n)+)", text)
    fields = re.findall(r"^ +(\w+) \w+(?:\[(\d+)\])?\s*$", body, re.MULTILINE)
    letters = [(CODES.get(kind) or columns(native, file, kind)) for kind, _ in fields]
    return "".join(code * int(count or 1) for code, (_, count) in zip(letters, fields, strict=True))


def module(native: Path) -> str:
    """The text of the module."""
    lines = [
        f'# {row} of {file}.\n{name} = Struct("<{columns(native, file, row)}")\n'
        for name, file, row in ROWS
    ]
    return HEAD + "".join(lines)


if __name__ == "__main__":
    sys.stdout.write(module(Path(sys.argv[1])))
