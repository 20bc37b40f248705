"""What Python repeats of the native sources, field by field; and texts for outcomes."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from struct import Struct

import pytest

from pylink.facts import outcomes, records, rowformats
from pylink.fleet import fragment
from pylink.inputs import archivefaults, damage
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
    """Return the format of a packed struct, one letter a field."""
    (body,) = re.findall(rf"packed struct {name}:\n((?:[ \t]+.*\n|\n)+)", source(file))
    rows = re.findall(r"^\s+(\w+) \w+(?:\[(\d+)\])?\s*$", body, re.MULTILINE)
    return "".join(CODES[kind] * int(count or 1) for kind, count in rows)


def letters(row: Struct) -> str:
    """Return the format with its counts written out: `2I` as `II`; bytes are numbers."""
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


@pytest.mark.parametrize(
    ("sentences", "numbers"),
    [
        (faults.KINDS | faults.TEXTS, outcomes.ReadFault),
        (damage.REASONS, outcomes.FatbinFault),
        (archivefaults.ARCHIVE_FAULTS | archivefaults.MEMBER_FAULTS, outcomes.ArchiveFault),
        (fragment.FAULTS, outcomes.IndexFault),
    ],
)
def test_every_reason_of_a_kernel_has_its_words(
    sentences: dict[int, object], numbers: type
) -> None:
    values = {value for value in vars(numbers).values() if isinstance(value, int)}
    assert {0, *sentences} == values


def test_every_outcome_of_a_comparison_has_its_words() -> None:
    values = {value for value in vars(outcomes.FoldOutcome).values() if isinstance(value, int)}
    assert {*reasons.REASONS, outcomes.FoldOutcome.NEEDS_DIGESTS} == values
    assert reasons.BLOCKERS.keys() == reasons.REASONS.keys()
