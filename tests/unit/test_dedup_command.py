"""`pylink dedup`: what a person sees and what a program reads."""

from __future__ import annotations

import csv
import io
import json
import struct
from pathlib import Path

import pytest
from helpers.dedup_cubin import (
    CODE,
    FRAME,
    FRAME_RELA,
    FUNC,
    LOCAL,
    TEMPLATE,
    Cubin,
    Section,
    Symbol,
    rela,
)
from helpers.fatbin_builder import container, entry, host_object

from pylink.dedup.command import main
from pylink.dedup.files import list_files
from pylink.terminal import tables

LOCAL_KERNEL = TEMPLATE.with_symbol(1, Symbol("k", LOCAL, FUNC, CODE))
OTHER_FRAME = TEMPLATE.with_section(FRAME, data=b"frXme")


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two copies; others with another frame, with a local kernel, without Mercury sections."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.cubin").write_bytes(TEMPLATE.image())
    (tmp_path / "b.cubin").write_bytes(TEMPLATE.image())
    (tmp_path / "c.cubin").write_bytes(OTHER_FRAME.image())
    (tmp_path / "sub/d").write_bytes(LOCAL_KERNEL.image())
    (tmp_path / "e.cubin").write_bytes(Cubin([Section(".text.k", b"x")], []).image())
    (tmp_path / "notes.txt").write_text("no cubin")
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(argv) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    return shown.out


@pytest.mark.usefixtures("build")
def test_the_table_names_fate_and_reason(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, ".", "--all")
    lines = text.splitlines()
    assert any("b.cubin" in line and "folds into a.cubin" in line for line in lines)
    assert any(
        "c.cubin" in line and ".nv.merc.debug_frame differs at byte 0x2: 58 6d 65 here" in line
        for line in lines
    )
    assert any("sub/d" in line and "define different functions" in line for line in lines)
    assert "1 of 4 objects fold; the bytes saved in an output are unknown" in text
    assert "other bytes in .debug_frame" in text
    assert ".nv.merc.nv.info" in text


@pytest.mark.usefixtures("build")
def test_a_screen_says_it_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, ".")
    assert len(text.splitlines()) <= 24
    rows = [line.split("  ") for line in text.splitlines()]
    said = {row[1]: row[-1].strip() for row in rows if len(row) > 2}
    assert said["b.cubin"] == "all its sections are in an earlier object"
    assert said["c.cubin"] == "other bytes in .debug_frame, against a.cubin"
    assert "at byte" not in text
    assert "--all" in text


@pytest.mark.usefixtures("build")
def test_json_has_everything(capsys: pytest.CaptureFixture[str]) -> None:
    value = json.loads(run(capsys, "--json", "a.cubin", "b.cubin", "c.cubin"))
    assert [row["folds_into"] for row in value["objects"]] == [None, "a.cubin", None]
    assert [row["code"] for row in value["objects"]] == [None, 0, 17]
    assert value["objects"][2]["offset"] == 2
    assert value["objects"][2]["entry"] == ".nv.merc.debug_frame"
    assert value["payload_bytes"] == 90
    assert value["saved_bytes"] is None  # made by hand, these are no program
    assert value["families"]["debug_frame"] == {
        "sections": 3,
        "bytes": 15,
        "folded_sections": 1,
        "folded_bytes": 5,
        "single_sections": 1,
        "single_bytes": 5,
    }
    # Container and debug_line of the third are copies too, its relocations belong to the frame.
    assert value["families"]["container"]["single_sections"] == 2
    assert value["families"]["rela"]["single_sections"] == 1
    assert value["total"]["bytes"] == 270
    assert value["blockers"] == {"other bytes: debug_frame": 1}
    assert value["stats"]["pairs"] == 2
    assert len(value["stats"]["stage_ns"]) == 3


def test_what_stands_in_the_way_by_family(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = TEMPLATE.with_section(FRAME_RELA, data=rela(1, 2, 1))
    records = [Section(f".nv.merc.nv.info.{name}", name.encode()) for name in ("k", "longer")]
    more = Cubin([*TEMPLATE.sections, *records], TEMPLATE.symbols)
    for name, cubin in (("a", TEMPLATE), ("b", other), ("c", more)):
        (tmp_path / name).write_bytes(cubin.image())
    value = json.loads(run(capsys, "--json", str(tmp_path)))
    assert value["blockers"] == {
        "no such relocations: rela": 1,
        "no such section header: container": 1,
    }
    assert value["unlisted"] == {
        ".nv.merc.nv.info": {"sections": 3, "bytes": 12},
        ".nv.merc.nv.info.*": {"sections": 2, "bytes": 7},
        ".nv.merc.symtab": {"sections": 3, "bytes": 3 * 96},
    }


@pytest.mark.usefixtures("build")
def test_csv_has_a_line_for_each_object(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(run(capsys, "--csv", "a.cubin", "b.cubin", "sub"))))
    assert [row["object"] for row in rows] == ["a.cubin", "b.cubin", "sub/d"]
    assert [row["folds into"] for row in rows] == ["", "a.cubin", ""]
    assert [row["code"] for row in rows] == ["", "0", "18"]
    assert rows[2]["compared with"] == "a.cubin"


@pytest.mark.usefixtures("build")
def test_bytes_alone_fold_what_symbols_keep(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["--json", "a.cubin", "sub/d"]
    assert json.loads(run(capsys, *argv))["objects"][1]["code"] == 18
    assert json.loads(run(capsys, *argv, "--identity=bytes"))["objects"][1]["code"] == 0


@pytest.mark.usefixtures("build")
def test_the_prefilter_changes_the_work_and_not_the_outcome(
    capsys: pytest.CaptureFixture[str],
) -> None:
    values = [json.loads(run(capsys, "--json", ".", f"--prefilter={p}")) for p in ("xxh3", "none")]
    assert values[0].pop("stats")["prefilter_hits"] > 0
    assert values[1].pop("stats")["prefilter_hits"] == 0
    assert values[0] == values[1]


LONG_CODE = TEMPLATE.with_section(CODE, data=b"\x04\0a longer capsule")
OTHER_LINE = TEMPLATE.with_section(".nv.merc.debug_line", data=b"lXne")


@pytest.mark.parametrize(
    ("cubins", "nearest"),
    [
        # Not the one that happens to stand before it.
        ((TEMPLATE, LONG_CODE.with_section(FRAME, data=b"f"), OTHER_FRAME), 0),
        # The frame with its relocations is more than the larger capsule.
        ((TEMPLATE, LONG_CODE.with_section(FRAME, data=b"f"), LONG_CODE), 0),
        # Both have the frame, and the capsule is more than the lines.
        ((LONG_CODE, OTHER_LINE, TEMPLATE), 1),
    ],
)
def test_the_most_similar_object_explains_a_kept_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cubins: tuple[Cubin, ...], nearest: int
) -> None:
    for name, cubin in zip("abc", cubins, strict=True):
        (tmp_path / name).write_bytes(cubin.image())
    value = json.loads(run(capsys, "--json", *(str(tmp_path / name) for name in "abc")))
    assert value["objects"][2]["compared_with"] == str(tmp_path / "abc"[nearest])


def test_capsules_that_differ_in_their_section_number_count_one_by_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = TEMPLATE.with_section(CODE, data=b"\x05\0capsule")
    (tmp_path / "a").write_bytes(TEMPLATE.image())
    (tmp_path / "b").write_bytes(moved.image())
    value = json.loads(run(capsys, "--json", str(tmp_path)))
    assert value["objects"][1]["code"] == 17
    assert value["families"]["container"]["single_sections"] == 1


def test_directories_are_searched_for_cubins_in_order(build: Path) -> None:
    found = [path.relative_to(build).as_posix() for path in list_files([str(build)])]
    assert found == ["a.cubin", "b.cubin", "c.cubin", "e.cubin", "sub/d"]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["notes.txt"], "pylink dedup: notes.txt: 8 bytes are too few for an ELF header\n"),
        (["none.cubin"], "No such file or directory"),
    ],
)
@pytest.mark.usefixtures("build")
def test_an_unreadable_input_ends_the_command(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 1
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""


@pytest.mark.parametrize("entry_size", [64, 65])
def test_bad_section_headers_are_described(
    tmp_path: Path, entry_size: int, capsys: pytest.CaptureFixture[str]
) -> None:
    header = bytearray(TEMPLATE.image()[:64])
    struct.pack_into("<Q", header, 40, 64)  # e_shoff
    struct.pack_into("<HH", header, 58, entry_size, 0xFFF0)  # e_shentsize, e_shnum
    path = tmp_path / "a.cubin"
    path.write_bytes(header + bytes(128))
    assert main([str(path)]) == 1
    assert "section headers run past the file, or do not have 64 bytes" in capsys.readouterr().err
    # An architecture is read from a file's header by other code.
    assert main(["--arch", "sm_100", str(path)]) == 1
    assert capsys.readouterr().err.startswith(f"pylink dedup: {path}: ")


def test_rich_shows_the_same_cells(capsys: pytest.CaptureFixture[str]) -> None:
    module = pytest.importorskip("rich.console")
    console = module.Console(file=io.StringIO(), width=200)
    tables.print_rich(console, [tables.TextTable("Title", ("name", "count"), [("[a]", "1")])])
    text = console.file.getvalue()
    assert all(word in text for word in ("Title", "name", "[a]", "1"))


def test_plain_tables_are_aligned() -> None:
    table = tables.TextTable("T", ("name", "count"), [("long name", "1"), ("x", "100")])
    assert tables.as_text([table]) == (
        "T\n  name       count\n  long name      1\n  x            100\n\n"
    )


def test_cubins_in_other_files_are_analyzed(
    build: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = [container(entry(TEMPLATE.image(), arch)) for arch in (100, 100)]
    for name, data in zip(("x.o", "y.so"), code, strict=True):
        (build / name).write_bytes(host_object([("__nv_relfatbin", data)]))
    text = run(capsys, "x.o", "y.so")
    assert "y.so (sm_100)  folds into x.o (sm_100)" in text
    assert main(["--arch", "sm_90", "x.o"]) == 1
    assert capsys.readouterr().err == "pylink dedup: x.o: there is no cubin for sm_90 in it\n"


@pytest.mark.usefixtures("build")
def test_a_directory_without_cubins_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["empty"]) == 1
    assert capsys.readouterr().err == (
        "pylink dedup: empty: there is no cubin file in it; in directories only cubins are read, "
        "so name objects, archives and libraries\n"
    )
