"""`pylink inspect --diff`: what it sees, what it says, what it may be told to ignore."""

from __future__ import annotations

import json
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from helpers.compare import compare

from pylink.command.inspection import main
from pylink.inspect.difference import compare_rows
from pylink.inspect.image import Image, Section
from pylink.inspect.rows import Text

GOLDEN = Path(__file__).parent.parent / "golden"
SM_75 = GOLDEN / "75" / "calls" / "exec.nvlink.cubin"
SM_100 = GOLDEN / "100" / "calls" / "exec.nvlink.cubin"


class Pair:
    """Two copies of a cubin as files `a` and `b`; the second one can be changed."""

    def __init__(self, folder: Path, source: Path) -> None:
        self.data = bytearray(source.read_bytes())
        self.image = Image(bytes(self.data))
        (folder / "a").write_bytes(self.data)
        self.path = folder / "b"

    def section(self, name: str) -> Section:
        section = self.image.section(name)
        assert section is not None
        return section

    def change(self, at: int, new: bytes) -> None:
        self.data[at : at + len(new)] = new

    def write(self) -> None:
        self.path.write_bytes(self.data)


@pytest.fixture
def pair_75(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pair:
    monkeypatch.chdir(tmp_path)
    return Pair(tmp_path, SM_75)


@pytest.fixture
def pair_100(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pair:
    monkeypatch.chdir(tmp_path)
    return Pair(tmp_path, SM_100)


def diff(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    status = main(["--diff", *options, "a", "b"])
    shown = capsys.readouterr()
    assert shown.err == ""
    return status, shown.out


def test_equal_cubins_are_equal_in_silence(
    pair_75: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    pair_75.write()
    assert diff(capsys) == (0, "")


def test_a_symbol(pair_75: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    index = pair_75.image.symbols.index("counters")
    at = pair_75.section(".symtab").offset + 24 * index
    pair_75.change(at + 8, struct.pack("<Q", 0x1234))
    pair_75.write()
    status, text = diff(capsys)
    assert status == 1
    assert text == (
        "--- a\n"
        "+++ b\n"
        f"symbol .symtab[{index}]\n"
        "  - counters: GLOBAL OBJECT in .nv.global value 0x48 size 0xc\n"
        "  + counters: GLOBAL OBJECT in .nv.global value 0x1234 size 0xc\n"
        "differences: symbol 1\n"
    )


def test_a_record(pair_75: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    at = pair_75.section(".nv.info._Z7no_callPd")
    data = pair_75.image.content(at)
    place = data.index(bytes([3, 0x1B]))  # MAXREG_COUNT, a 16-bit value
    pair_75.change(at.offset + place + 2, struct.pack("<H", 0x80))
    pair_75.write()
    status, text = diff(capsys)
    assert status == 1
    assert (
        "  - EIATTR_MAXREG_COUNT (HVAL) 0xff\n  + EIATTR_MAXREG_COUNT (HVAL) 0x80\n"
        "differences: record 1\n"
    ) in text


def test_a_relocation(pair_100: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    section = pair_100.section(".rela.nv.global.init")
    pair_100.change(section.offset + 16, struct.pack("<q", -8))
    pair_100.write()
    status, text = diff(capsys)
    assert status == 1
    assert text.splitlines()[2:] == [
        "relocation .rela.nv.global.init[0]",
        "  - 0x8 R_CUDA_G64 counters + 0x8",
        "  + 0x8 R_CUDA_G64 counters - 0x8",
        "differences: relocation 1",
    ]


def test_a_call(pair_75: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    section = pair_75.section(".nv.callgraph")
    caller = struct.unpack_from("<I", pair_75.data, section.offset + 8)[0]
    pair_75.change(section.offset + 12, struct.pack("<I", caller))
    pair_75.write()
    status, text = diff(capsys)
    assert status == 1
    name = pair_75.image.symbols[caller]
    assert f"  + {name} -> {name}\n" in text
    assert text.endswith("differences: call 2\n")


def test_numbers_in_section_headers(pair_75: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    """The first symbol that is not local, and the registers of a kernel above its symbol."""
    for name, byte, note in (
        (".symtab", 0, ""),
        (".text._Z7no_callPd", 3, ": _Z7no_callPd, _Z7no_callPd"),
    ):
        section = pair_75.section(name)
        at = pair_75.image.header.shoff + 64 * section.index + 44 + byte
        pair_75.data[at] ^= 1
        pair_75.write()
        status, text = diff(capsys)
        assert status == 1
        assert text.splitlines()[2:] == [
            f"section {name} sh_info{note}",
            f"  - {section.info:#x}",
            f"  + {section.info ^ 1 << 8 * byte:#x}",
            "differences: section 1",
        ]
        pair_75.data[at] ^= 1


def test_instructions_and_their_scoreboards(
    pair_100: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    section = pair_100.section(".text._Z7no_callPd")
    pair_100.data[section.offset + 16 + 14] ^= 0x40
    pair_100.write()
    assert diff(capsys, "--ignore-scoreboards") == (0, "")
    status, text = diff(capsys)
    assert status == 1
    assert (
        "bytes .text._Z7no_callPd+0x10: 1 of 24 instructions differ, in their scoreboards alone\n"
    ) in text
    pair_100.data[section.offset + 32] ^= 1
    pair_100.write()
    status, text = diff(capsys, "--ignore-scoreboards")
    assert status == 1
    assert "bytes .text._Z7no_callPd+0x20: 1 of 24 instructions differ\n" in text


def test_the_section_that_a_capsule_belongs_to(
    pair_100: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is compared where the sections have their numbers in both."""
    section = pair_100.section(".nv.capmerc.text._Z7no_callPd")
    pair_100.data[section.offset] ^= 1
    pair_100.write()
    status, text = diff(capsys)
    assert status == 1
    assert text.splitlines()[2].startswith(f"bytes {section.name}+0x0: 1 of ")


def test_the_tool_note(pair_75: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    section = pair_75.section(".note.nv.tkinfo")
    at = section.offset + pair_75.image.content(section).index(b"nvlink")
    pair_75.change(at, b"mylink")
    pair_75.write()
    assert diff(capsys, "--ignore-tool-note") == (0, "")
    assert diff(capsys) == (
        1,
        "--- a\n+++ b\n"
        "note .note.nv.tkinfo tool\n  - 'nvlink'\n  + 'mylink'\n"
        "differences: note 1\n",
    )


def test_a_byte_of_padding_and_an_offset_count(
    pair_75: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    image = pair_75.image
    text = next(s for s in image.sections if s.name.startswith(".text."))
    before = image.sections[text.index - 1]
    assert before.offset + before.file_size < text.offset
    pair_75.change(text.offset - 1, b"\x55")
    pair_75.write()
    status, shown = diff(capsys, "--ignore-tool-note", "--ignore-scoreboards")
    assert status == 1
    assert f"layout padding {text.offset - 1:#x}\n" in shown


def test_what_only_one_cubin_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_bytes(SM_75.read_bytes())
    (tmp_path / "b").write_bytes(SM_75.with_name("g.nvlink.cubin").read_bytes())
    status, text = diff(capsys, "--ignore-tool-note", "--limit", "1")
    assert status == 1
    # The sections come first; what only follows from the new numbers is not there.
    assert text.startswith("--- a\n+++ b\nsection .nv.info._Z4deadi\n  + CUDA_INFO, 0x14 bytes\n")
    assert "  + _Z4deadi: GLOBAL FUNC in .text._Z4deadi value 0x0 size 0x100\n" not in text
    assert "symbol .symtab: 1 more\n" in text
    assert "sh_link" not in text
    assert "  + _Z4deadi #ii\n" in text
    _, text = diff(capsys, "--ignore-tool-note", "--limit", "0")
    assert "  + _Z4deadi: GLOBAL FUNC in .text._Z4deadi value 0x0 size 0x100\n" in text


def test_json(pair_75: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    pair_75.write()
    assert json.loads(diff(capsys, "--json")[1]) == {
        "first": "a",
        "second": "b",
        "equal": True,
        "differences": [],
    }
    pair_75.data[16] = 1  # e_type
    pair_75.write()
    status, text = diff(capsys, "--json")
    assert status == 1
    value: dict[str, Any] = json.loads(text)
    assert value["equal"] is False
    assert value["differences"] == [
        {
            "kind": "header",
            "section": "ELF header",
            "where": " e_type",
            "first": "0x2",
            "second": "0x1",
            "note": "",
        }
    ]


@pytest.mark.parametrize("folder", sorted(GOLDEN.glob("*/*")), ids=lambda path: str(path)[-20:])
def test_cubins_of_one_program_differ_and_equal_themselves(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = sorted(map(str, folder.glob("*.cubin")))
    for path in paths:
        assert main(["--diff", path, path]) == 0
    for path, other in pairwise(paths):
        expected = Path(path).read_bytes() != Path(other).read_bytes()
        assert main(["--diff", path, other]) == expected
    assert capsys.readouterr().err == ""


def test_rows_are_paired_by_what_they_are() -> None:
    def texts(line: str) -> list[Text]:
        return [Text(word) for word in line.split()]

    def found(first: str, second: str) -> list[tuple[str, str | None, str | None, str]]:
        rows = compare_rows("s", texts(first), texts(second))
        return [(row.where, row.first, row.second, row.note) for row in rows]

    assert found("a b c", "a b c") == []
    assert found("a b c", "a c") == [("[1]", "'b'", None, "")]
    assert found("a c", "a b c") == [("[1]", None, "'b'", "")]
    assert found("a b", "b a") == [("[0]", "'a'", "'b'", "same entries in another order")]
    assert found("a a", "a") == [("[1]", "'a'", None, "")]
    assert found("", "a") == [("[0]", None, "'a'", "")]
    assert found("a b x", "b a y") == [
        ("[0]", "'a'", "'b'", "entries in another order"),
        ("[2]", "'x'", None, ""),
        ("[2]", None, "'y'", ""),
    ]


def test_the_strict_comparison_of_the_tests_says_the_same(pair_75: Pair) -> None:
    pair_75.data[16] = 1
    assert compare(bytes(pair_75.data), pair_75.image.data) == [
        "header ELF header e_type: got 0x1; expected 0x2"
    ]
