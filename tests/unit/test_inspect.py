"""`pylink inspect`: what a person reads and what a program reads of one cubin."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from helpers.cubin_builder import LOCAL, SECTION, SHT_PROGBITS, Cubin, Section, Symbol, one_kernel
from helpers.inspect_expected import CALLS, GUARD

from pylink import size
from pylink.command.cli import main as pylink
from pylink.command.inspection import main
from pylink.inspect.columns import format_pairs
from pylink.inspect.image import Image, MalformedCubin
from pylink.inspect.large import MOST_ROWS
from pylink.inspect.parts import PARTS, image_text

ROOT = Path(__file__).parent.parent.parent
GOLDEN = ROOT / "tests" / "golden"
GUARDED = GOLDEN / "75" / "guard" / "exec.nvlink.cubin"
CUBINS = sorted((*GOLDEN.rglob("*.cubin"), *(ROOT / "demo").rglob("*.cubin")))


@pytest.fixture(autouse=True)
def _in_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(argv) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    return shown.out


def document(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    value = json.loads(run(capsys, "--json", *argv))
    assert isinstance(value, dict)
    return value


def rows(value: dict[str, Any], part: str, section: str) -> list[dict[str, Any]]:
    return [row for table in value[part] if table["section"] == section for row in table["rows"]]


def test_a_linked_cubin_as_a_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, str(GUARDED.relative_to(ROOT))) == GUARD


def test_a_segment_that_ends_in_a_section_and_a_null_symbol_with_a_value() -> None:
    data = bytearray(GUARDED.read_bytes())
    struct.pack_into("<Q", data, 0xC80 + 56 + 32, 0x2CF)  # p_filesz
    struct.pack_into("<Q", data, 0x2B8 + 8, 0x10)  # st_value
    text = image_text("", Image(bytes(data)), PARTS)
    assert "0x630    0x2cf      0x2d0  .nv.constant0._Z5scalePfPKfi\n" in text
    assert re.search(r"^ +0 +0x10 +0x0 +LOCAL +NOTYPE", text, re.MULTILINE)


def test_the_call_graph_names_callers_callees_and_prototypes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(capsys, "--callgraph", "tests/golden/100/calls/m0.cubin") == CALLS


def test_every_block_of_a_call_graph_names_what_its_rows_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cubin = Cubin()
    kernel, taken = cubin.function("kernel", kernel=True), cubin.function("taken")
    cubin.call(kernel, taken)
    cubin.take_address(taken, "#vi")
    cubin.call_through(kernel, "#vf")
    (tmp_path / "a.cubin").write_bytes(cubin.build())
    shown = run(capsys, "--callgraph", str(tmp_path / "a.cubin")).splitlines()
    assert [line.strip() for line in shown if line.startswith("    ")] == [
        "kernel -> taken",
        "taken -> #vi",
        "kernel -> #vf",
        "none",
    ]


def test_notes_of_any_size_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def note(name: bytes, kind: int, data: bytes) -> bytes:
        padded = [part + bytes(-len(part) % 4) for part in (name, data)]
        return struct.pack("<III", len(name), len(data), kind) + b"".join(padded)

    cubin = one_kernel()
    data = note(b"ABCDE\0", 7, b"12345") + note(b"X\0", 8, b"")
    cubin.section(Section(".note.own", 7, data))
    (tmp_path / "a.cubin").write_bytes(cubin.build())
    found = document(capsys, "--notes", str(tmp_path / "a.cubin"))["notes"]
    assert [(note["vendor"], note["type"]) for note in found] == [("ABCDE", 7), ("X", 8)]


def test_the_command_is_part_of_pylink(capsys: pytest.CaptureFixture[str]) -> None:
    assert pylink(["inspect", "--callgraph", "tests/golden/100/calls/m0.cubin"]) == 0
    assert capsys.readouterr().out == CALLS


def test_mercury_data_is_shown_like_plain_data(capsys: pytest.CaptureFixture[str]) -> None:
    name = "tests/golden/100/calls/m0.cubin"
    text = run(capsys, "--sections", "--symbols", "--relocs", "--info", name)
    assert "\nMercury capsules\n  size  of\n  0x36  .text._ZN43_INTERNAL" in text
    assert "  10  CUDA_INFO                   I            0x13e4" in text
    assert "  28    0x0  0x160  GLOBAL   FUNC         .nv.capmerc.text" in text
    assert (
        "\nRelocations .nv.merc.rela.text._Z7no_callPd\n"
        "  offset  type                    symbol and addend\n"
        "    0xdc  0x10006 as ABS32_HI_32  unset\n"
        "    0x5c  0x10005 as ABS32_LO_32  unset\n"
    ) in text
    assert (
        "\nRecords .nv.merc.nv.info._Z4deadi\n"
        "  EIATTR_CUDA_API_VERSION           0x82\n"
        "  EIATTR_MERCURY_FINALIZER_OPTIONS  0xa4229d8a 0x6d149db1 0xf32ab400 0x8e0358f7"
        " 0x1b0a070c\n"
        "                                    0xd78adee2 0xc876352 0x72bd7 0x128a2bcd"
    ) in text
    assert "EICOMPAT_ATTR_MERCURY_ISA_MAJOR_MINOR_VERSION    1.1\n" in text


def test_addends_have_a_sign_and_rel_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "--relocs", "tests/golden/100/calls/m0.cubin")
    assert "    0x50  R_CUDA_ABS32_HI_32  _Z13use_recursionPi + 0x70\n" in text
    value = document(capsys, "--relocs", "tests/golden/75/guard/exec.nvlink.cubin")
    assert rows(value, "relocs", ".rel.debug_frame") == [
        {
            "offset": 0x44,
            "type": 2,
            "type_name": "R_CUDA_64",
            "symbol": "_Z5scalePfPKfi",
            "addend": None,
        }
    ]


def test_json_has_the_parts_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    name = "tests/golden/100/calls/m0.cubin"
    assert list(document(capsys, "--notes", "--info", name)) == ["file", "info", "notes"]
    assert list(document(capsys, name)) == ["file", *(part.name for part in PARTS)]


def test_json_values_are_numbers_and_names(capsys: pytest.CaptureFixture[str]) -> None:
    value = document(capsys, "tests/golden/100/calls/m0.cubin")
    assert value["headers"]["sm"] == 100
    assert value["headers"]["type"] == "REL"
    info = rows(value, "info", ".nv.info._Z7no_callPd")
    assert {row["attribute"]: row["value"] for row in info} == {
        "EIATTR_CUDA_API_VERSION": 130,
        "EIATTR_KPARAM_INFO": {
            "index": 0,
            "ordinal": 0,
            "offset": 0,
            "size": 8,
            "pointee_log_alignment": 0,
            "space": 5,
            "cbank": 31,
            "in_shared": False,
        },
        "EIATTR_SPARSE_MMA_MASK": 0,
        "EIATTR_MAXREG_COUNT": 255,
        "EIATTR_MERCURY_ISA_VERSION": "1.1",
        "EIATTR_VRC_CTA_INIT_COUNT": 0,
        "EIATTR_EXIT_INSTR_OFFSETS": 0xE0,
        "EIATTR_CBANK_PARAM_SIZE": 8,
        "EIATTR_PARAM_CBANK": {
            "section": ".nv.constant0._Z7no_callPd",
            "offset": 0x380,
            "size": 8,
        },
        "EIATTR_SW_WAR": 8,
    }
    registers = rows(value, "info", ".nv.info")[0]
    assert registers["symbol"] == "_Z4deadi"
    assert registers["value"] == 24
    weights = next(r for r in rows(value, "symbols", ".symtab") if r["name"] == "weights")
    assert weights["other"] == ["CONSTANT"]
    assert weights["section"] == ".nv.constant3"
    capsule = next(s for s in value["sections"] if s["name"] == ".nv.capmerc.text._Z4deadi")
    assert capsule["capsule_of"] == ".text._Z4deadi"
    assert value["notes"][0]["options"] == "-arch sm_100 -m 64 -c  "
    assert value["callgraph"]["prototypes"][0] == {"function": "_Z9fibonaccii", "prototype": "#ii"}
    assert value["callgraph"]["blocks"]["-1"][0] == ["_Z13use_recursionPi", "_Z9fibonaccii"]


def test_of_sections_of_one_name_the_first_is_found() -> None:
    cubin = one_kernel()
    numbers = [cubin.section(Section(".same", SHT_PROGBITS, data)) for data in (b"1", b"2")]
    image = Image(cubin.build())
    first = image.section(".same")
    assert first is not None
    assert first.index == numbers[0]
    assert [image.sections[number].key for number in numbers] == [(".same", 0), (".same", 1)]


def test_section_numbers_of_symbols_from_a_table_of_their_own() -> None:
    cubin = one_kernel()
    number = cubin.symbol(Symbol("", SECTION, LOCAL, section=0xFFFF))
    wide = Section(".symtab_shndx", SHT_PROGBITS, bytes(4 * number) + struct.pack("<I", 4))
    place = cubin.section(wide)
    assert Image(cubin.build()).symbols[number] == "(.text.kernel)"
    cubin.sections[place - 1].data = wide.data[:-4]
    with pytest.raises(MalformedCubin, match=rf"^\.symtab\[{number}\]: no section number"):
        _ = Image(cubin.build()).symbols


def test_several_files_make_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    name = "tests/golden/75/guard/m0.cubin"
    value = json.loads(run(capsys, "--json", "--notes", name, name))
    assert [entry["file"] for entry in value] == [name, name]


# What no tool of NVIDIA's names: since 13.2, 13.3 and 13.4.
NAMELESS = re.compile(r"EIATTR 0x6[bd]\b|EICOMPAT 0x[cde]\b")


@pytest.mark.parametrize("path", CUBINS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_number_of_real_cubins_has_a_name(path: Path) -> None:
    text = image_text("", Image(path.read_bytes()), PARTS)
    text = NAMELESS.sub("", text)
    for unknown in ("?", "EIATTR 0x", "EICOMPAT 0x", "binding ", "space 6"):
        assert unknown not in text.replace("binding  type", "")
    assert re.search(r"  0x7000[0-9a-f]{4}\b", text) is None  # a type of section


def test_long_values_continue_under_their_beginning() -> None:
    words = " ".join(["0x1234"] * 20)
    text = format_pairs([("NAME", words), ("N", "1")])
    assert text.splitlines() == [
        "  NAME  " + " ".join(["0x1234"] * 13),
        "        " + " ".join(["0x1234"] * 7),
        "  N     1",
    ]


def test_a_large_cubin_has_a_first_screen_that_says_how_to_get_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cubin = one_kernel()
    for number in range(MOST_ROWS):
        cubin.symbol(Symbol(f"label_{number}", bind=LOCAL))
    path = tmp_path / "large.cubin"
    path.write_bytes(cubin.build())
    first = run(capsys, str(path))
    assert len(first.splitlines()) < 40
    assert re.search(r"^  target +sm_80", first, re.MULTILINE)
    assert re.search(r"^  names, symbols .* kB", first, re.MULTILINE)
    assert re.search(r"^  kernel ", first, re.MULTILINE)
    assert f"--symbols {MOST_ROWS + 2:,}" in first
    assert "everything with --all" in first
    every = run(capsys, "--all", str(path))
    assert f"label_{MOST_ROWS - 1}" in every
    assert "Bytes by function" in every
    assert f"label_{MOST_ROWS - 1}" in run(capsys, "--symbols", str(path))
    assert len(document(capsys, str(path))["symbols"][0]["rows"]) == MOST_ROWS + 2


def test_sizes_are_those_of_pylink_size(capsys: pytest.CaptureFixture[str]) -> None:
    value = document(capsys, "--sizes", str(GUARDED))
    assert list(value) == ["file", "sizes"]
    assert sum(row["bytes"] for row in value["sizes"]) == GUARDED.stat().st_size
    measured = size.rows(size.measure([str(GUARDED)]), ("part", "function"))
    assert [(row["part"], row["function"], row["bytes"]) for row in value["sizes"]] == [
        (*row.keys, row.installed) for row in measured
    ]
    assert main(["--sizes", "--diff", str(GUARDED), str(GUARDED)]) == 2
