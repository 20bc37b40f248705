"""Kernels that fail with a number have a text for each of their faults."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[2] / "src" / "_native"
# What becomes no message about a file: no fault, and a lack of memory.
WITHOUT_TEXT = {"R_NONE", "R_MEMORY", "ELF_GOOD", "ELF_NO_TABLE"}


def members(header: str, enum: str) -> list[str]:
    """The names of an enum of a header."""
    text = (NATIVE / header).read_text(encoding="utf-8")
    body = text.partition(f"cdef enum {enum}:\n")[2].partition("\n\n")[0]
    return re.findall(r"^ +([A-Z]\w+)", body, re.MULTILINE)


def texts(module: str) -> list[str]:
    """The names for which `text_of` of a module has a text."""
    text = (NATIVE / module).read_text(encoding="utf-8")
    body = text.partition("cdef str text_of(")[2].partition("\n\n")[0]
    return re.findall(r"^ +([A-Z]\w+): f?\"", body, re.MULTILINE)


@pytest.mark.parametrize(
    ("header", "enum", "module"),
    [
        ("debug/rows.pxd", "DebugFault", "debug/debug.pyx"),
        ("exits/rows.pxd", "RewriteFaultReason", "exits/exits.pyx"),
        ("base/elffile.pxd", "ElfFault", "read/elfheaders.pyx"),
    ],
)
def test_each_fault_has_its_text(header: str, enum: str, module: str) -> None:
    faults = [name for name in members(header, enum) if name not in WITHOUT_TEXT]
    assert len(faults) > 6
    assert texts(module) == faults
