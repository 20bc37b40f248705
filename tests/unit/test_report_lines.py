"""Line tables of cubins in reports: rows, what ends them, and damaged ones."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pylink.report.source.linetable import MalformedLines, read_lines

# Version 2, instructions of 16 bytes, line base -5, line range 14, ten standard opcodes.
PROLOGUE = struct.pack("<BBbBB", 16, 1, -5, 14, 10) + bytes([0, 1, 1, 1, 1, 0, 0, 0, 1])
FILES = b"/src\0" + b"\0" + b"a.cu\0\1\0\0" + b"/abs/b.cu\0\1\0\0" + b"\0"
SET_ADDRESS = b"\0\x09\x02"
END = b"\0\1\1"


def table(program: bytes, files: bytes = FILES, version: int = 2) -> bytes:
    head = PROLOGUE + files
    body = struct.pack("<HI", version, len(head)) + head + program
    return struct.pack("<I", len(body)) + body


def at(address: int) -> bytes:
    return SET_ADDRESS + struct.pack("<Q", address)


def special(advance: int, line: int) -> bytes:
    return bytes([10 + 14 * advance + line + 5])


def test_rows_of_a_program() -> None:
    program = at(0x100) + special(0, 2) + special(1, 1) + b"\4\2" + special(2, -3) + b"\2\1" + END
    found = read_lines(table(program), {})
    assert [tuple(row) for row in found.rows] == [
        (0x100, "/src/a.cu", 3),
        (0x110, "/src/a.cu", 4),
        (0x130, "/abs/b.cu", 1),
        (0x140, None, 0),
    ]
    assert found.find(0x10F) == ("/src/a.cu", 3)
    assert found.find(0x13F) == ("/abs/b.cu", 1)
    assert found.find(0xFF) is None
    assert found.find(0x140) is None


def test_addresses_count_from_symbols_unless_they_are_in_place() -> None:
    program = at(0x20) + special(0, 0) + END
    place = table(program).index(SET_ADDRESS) + len(SET_ADDRESS)
    assert read_lines(table(program), {place: 0x1000}).rows[0].address == 0x1020
    loaded = at(0x1020) + special(0, 0) + END
    assert read_lines(table(loaded), {place: 0x1000}).rows[0].address == 0x1020


def test_opcodes_of_ptxas_are_skipped() -> None:
    program = at(0x100) + b"\0\4\x90\1\2\3" + special(0, 0) + END
    assert read_lines(table(program), {}).rows[0].line == 1


def test_sequences_that_touch() -> None:
    program = at(0x100) + special(0, 0) + b"\2\1" + END + at(0x110) + special(0, 4) + END
    found = read_lines(table(program) + table(at(0x200) + special(0, 8) + b"\2\1" + END), {})
    assert found.find(0x110) == ("/src/a.cu", 5)
    assert found.find(0x200) == ("/src/a.cu", 9)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (table(END)[:-1], "is cut off"),
        (table(END, version=5), "version 5 of line tables is not known"),
        (table(END, files=b"x"), "is damaged"),
        (table(at(0)[:5]), "is damaged"),
        (table(b"\2" + b"\x80" * 100), "is damaged"),
        (b"\4\0\0\0abcd", "is damaged"),
        (table(END)[:13] + b"\0" + table(END)[14:], "advances by nothing"),
    ],
)
def test_damaged_tables(data: bytes, reason: str) -> None:
    with pytest.raises(MalformedLines, match=reason):
        read_lines(data, {})


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80), st.booleans())
def test_any_program_is_rows_or_the_one_error(program: bytes, framed: bool) -> None:
    with contextlib.suppress(MalformedLines):
        read_lines(table(program) if framed else program, {})
