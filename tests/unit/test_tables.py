"""What Python repeats of the native sources: rows, field by field, and numbers with a meaning."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from struct import Struct
from types import ModuleType

import pytest

from pylink.facts import records, rowformats
from pylink.inputs import archiveformat, damage
from pylink.mercury import reasons
from pylink.phases import faults

NATIVE = Path(__file__).parents[2] / "src" / "_native"
CODES = {
    "uint8_t": "B",
    "uint16_t": "H",
    "int32_t": "i",
    "uint32_t": "I",
    "int64_t": "q",
    "uint64_t": "Q",
    "Range": "QQ",  # of fatbinrows.pxd
}
ROWS = [
    (records.SHDR, "elf64.pxd", "Shdr"),
    (records.REL, "elf64.pxd", "Rel"),
    (records.RELA, "elf64.pxd", "Rela"),
]


@cache
def source(file: str) -> str:
    (path,) = NATIVE.glob(f"**/{file}")
    return re.sub(r"#.*", "", path.read_text(encoding="utf-8"))


def fields(file: str, name: str) -> str:
    """The format of a packed struct, one letter a field."""
    (body,) = re.findall(rf"packed struct {name}:\n((?:[ \t]+.*\n|\n)+)", source(file))
    rows = re.findall(r"^\s+(\w+) \w+(?:\[(\d+)\])?\s*$", body, re.MULTILINE)
    return "".join(CODES[kind] * int(count or 1) for kind, count in rows)


def letters(row: Struct) -> str:
    """The format with its counts written out: `2I` as `II`; bytes are numbers."""
    assert row.format.startswith("<")
    return re.sub(
        r"(\d+)(\w)", lambda match: match[2] * int(match[1]), row.format[1:].replace("s", "B")
    )


def test_formats_are_those_of_the_native_sources() -> None:
    made = (NATIVE.parent / "pylink/rowformats.py").read_text(encoding="utf-8")
    assert made == rowformats.module_text(NATIVE)


@pytest.mark.parametrize(("row", "file", "name"), ROWS)
def test_format_is_that_of_the_row(row: Struct, file: str, name: str) -> None:
    assert letters(row) == fields(file, name)


def numbers(file: str, prefix: str) -> dict[str, int]:
    """The enumerators that begin so, without the prefix."""
    found = re.findall(rf"^\s+{prefix}(\w+) = (0x[0-9a-f]+|\d+)U?\s*$", source(file), re.MULTILINE)
    assert found
    return {name: int(value, 0) for name, value in found}


def named(module: ModuleType, names: set[str]) -> dict[str, int]:
    return {name: getattr(module, name) for name in names}


@pytest.mark.parametrize(
    ("reasons", "file", "prefix"),
    [
        (faults.REASONS, "read/faults.pxd", "F_"),
        (damage.REASONS, "fatbinrows.pxd", "B_"),
        ({**archiveformat.ARCHIVE_FAULTS, **archiveformat.MEMBER_FAULTS}, "archives.pyx", "A_"),
    ],
)
def test_every_reason_of_a_kernel_has_its_words(
    reasons: dict[int, object], file: str, prefix: str
) -> None:
    assert {0, *reasons} == set(numbers(file, prefix).values())


def test_reasons_of_a_comparison_are_those_of_the_kernel() -> None:
    (body,) = re.findall(r"enum Reason:\n((?:[ \t]+.*\n|\n)+)", source("objects.pxd"))
    native = {name: int(value) for name, value in re.findall(r"^\s+(\w+) = (\d+)\s*$", body, re.M)}
    outcomes = native.keys() - {"NEEDS_DIGESTS"}  # which asks for another call
    assert sorted(native[name] for name in outcomes) == list(range(len(reasons.REASONS)))
    both = {name for name in native if hasattr(reasons, name)}
    assert {"ACCEPTED", "BYTES_DIFFER", "TARGET_TWIN", "NEEDS_DIGESTS"} <= both
    assert named(reasons, both) == {name: native[name] for name in both}
