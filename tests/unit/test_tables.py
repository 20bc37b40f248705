"""The rows that Python unpacks are those that the kernels pack, field by field."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pylink import tables

ROWS = Path(__file__).parents[2] / "src" / "_native" / "rows.pxd"
CODES = {
    "uint8_t": "B",
    "uint16_t": "H",
    "int32_t": "i",
    "uint32_t": "I",
    "int64_t": "q",
    "uint64_t": "Q",
}
NAMES = {
    "FILE": "FileRow",
    "SECTION": "SectionRow",
    "SYMBOL": "SymbolRow",
    "ENTITY": "EntityRow",
    "CALL": "CallRow",
    "CLASH": "ClashRow",
    "FAULT": "FaultRow",
    "FUNCTION": "FunctionRow",
    "OUT": "OutRow",
    "SPAN": "SpanRow",
    "PLACE": "PlaceRow",
    "FIX": "FixRow",
    "KEEP": "KeepRow",
    "PATCH": "PatchRow",
}


def fields() -> dict[str, str]:
    """The format of each packed struct of rows.pxd, one letter a field."""
    source = re.sub(r"#.*", "", ROWS.read_text(encoding="utf-8"))
    found = {}
    for name, body in re.findall(r"cdef packed struct (\w+):\n((?:[ \t]+.*\n|\n)+)", source):
        kinds = re.findall(r"^\s+(\w+) \w+\s*$", body, re.MULTILINE)
        found[name] = "".join(CODES[kind] for kind in kinds)
    return found


def letters(format_: str) -> str:
    """A struct format with its counts written out: `2I` as `II`."""
    return re.sub(r"(\d+)(\w)", lambda match: match[2] * int(match[1]), format_.lstrip("<"))


@pytest.mark.parametrize(("name", "row"), NAMES.items())
def test_format_is_that_of_the_row(name: str, row: str) -> None:
    format_ = getattr(tables, name).format
    assert format_.startswith("<")
    assert letters(format_) == fields()[row]


def test_flags_are_those_of_the_rows() -> None:
    source = ROWS.read_text(encoding="utf-8")
    for name in ("KERNEL", "DEFINED", "LOCAL", "LIVE"):
        value = re.search(rf"EF_{name} = (\d+)", source)
        assert value
        assert int(value[1]) == getattr(tables, name)
