"""What is measured by compressing again, and rules that compare contents: on planted files."""

from __future__ import annotations

import json
import re
import struct
import zlib
from pathlib import Path

import pytest
import zstandard
from helpers.fatbin_builder import PTX, container, entry
from helpers.sized import library, linked, wheel

from pylink._native.elfheaders import read_sections
from pylink.command.sizes import main
from pylink.demangle.templates import describe
from pylink.size import measure
from pylink.size.cuts import ptx_without_functions, without_debug, without_functions
from pylink.size.experiments import Experiments
from pylink.size.levels import rows
from pylink.size.model import Reduction
from pylink.size.reductions import reductions

MARK = struct.pack("<BBH", 1, 0x35, 0)  # EIATTR_SW2861232_WAR
GOLDEN = Path(__file__).parents[1] / "golden"


def fat(*pairs: tuple[int, bytes]) -> bytes:
    return container(*(entry(data, sm) for sm, data in pairs))


def rules(tmp_path: Path, *containers: bytes, machine: int = 62) -> list[Reduction]:
    path = tmp_path / "lib.so"
    path.write_bytes(library([(".nv_fatbin", b"".join(containers))], machine=machine))
    sizes = measure([str(path)])
    assert not sizes.unreadable
    return reductions(sizes)


def twins(tmp_path: Path, *pairs: tuple[int, bytes], machine: int = 62) -> list[str]:
    lines = rules(tmp_path, fat(*pairs), machine=machine)
    assert all(line.letter == "B" for line in lines if line.rule == "twins")
    return [line.title for line in lines if line.rule == "twins"]


def test_twins(tmp_path: Path) -> None:
    noted = linked(89, note=b"-arch sm_89")
    assert twins(tmp_path, (86, linked(86, note=b"-arch sm_86")), (89, noted)) == [
        "1 cubin of sm_89 as of sm_86"
    ]
    marked = linked(86, records=MARK)
    assert twins(tmp_path, (86, marked), (89, linked(89))) == [
        "1 cubin of sm_89 as of sm_86, except for a mark"
    ]
    assert len(twins(tmp_path, (80, linked(80)), (86, linked(86)), (89, linked(89)))) == 2


@pytest.mark.parametrize(
    "other",
    [
        linked(89, code=bytes(2048)),
        linked(89, "kernel", "more"),
        linked(89, records=struct.pack("<BBH", 1, 0x30, 0)),
        linked(89, data=bytes(16)),
        linked(89, registers=9),
    ],
)
def test_what_differs_is_no_twin(other: bytes, tmp_path: Path) -> None:
    assert twins(tmp_path, (86, linked(86)), (89, other)) == []


def test_a_twin_is_what_the_driver_takes_next(tmp_path: Path) -> None:
    # 89 is as 80, and without it a GPU would run the code for 86.
    different = linked(86, code=bytes(2048))
    assert twins(tmp_path, (80, linked(80)), (86, different), (89, linked(89))) == []
    assert twins(tmp_path, (80, linked(80)), (90, linked(90))) == []
    assert twins(tmp_path, (80, linked(80)), (87, linked(87))) == []
    assert len(twins(tmp_path, (86, linked(86)), (89, linked(89)), machine=183)) == 1


def test_repeated_functions_and_data_are_for_people_to_decide(tmp_path: Path) -> None:
    table = bytes(range(256)) * 4
    first = linked(80, "same", "other", data=table)
    second = linked(80, "same", data=table)
    lines = rules(tmp_path, fat((80, first)), fat((80, second)), fat((90, second)))
    by_rule = {line.rule: line for line in lines}
    assert by_rule["repeated-functions"].title.startswith("1 function")
    assert by_rule["repeated-functions"].installed == 2048
    assert by_rule["repeated-data"].installed == len(table)
    assert by_rule["repeated-data"].letter == by_rule["repeated-functions"].letter == "C"
    # Lines of class C come last, whatever they are worth.
    letters = [line.letter for line in lines]
    assert letters == sorted(letters, key="C".__eq__)
    changed = linked(80, "same", records=struct.pack("<BBH", 1, 0x30, 0), data=bytes(1024))
    left = {line.rule for line in rules(tmp_path, fat((80, first)), fat((80, changed)))}
    assert not left & {"repeated-functions", "repeated-data"}


def test_code_for_chips_of_other_hosts(tmp_path: Path) -> None:
    pairs = ((80, linked(80)), (87, linked(87)), (110, linked(110)))
    [line] = [line for line in rules(tmp_path, fat(*pairs)) if line.rule == "other-hosts"]
    assert (line.entries, line.letter) == (2, "C")
    assert "sm_110, sm_87" in line.title
    arm = rules(tmp_path, fat(*pairs), machine=183)
    assert "other-hosts" not in {line.rule for line in arm}


@pytest.mark.parametrize("mode", ["none", "zstd", "lz4"])
def test_debug_data_is_measured(mode: str, tmp_path: Path) -> None:
    debug = bytes(range(250)) * 40
    with_debug = entry(linked(debug=debug), 80, mode=mode)
    path = tmp_path / "lib.so"
    path.write_bytes(library([(".nv_fatbin", container(with_debug))]))
    sizes = measure([str(path)], experiments=Experiments(thorough=True))
    line = {line.rule: line for line in reductions(sizes)}["debug-data"]
    assert line.letter == "A"
    if mode == "none":
        # With its header and its name; entries are padded to 8 bytes.
        assert abs(line.installed - len(debug) - 64 - len(".debug_line\0")) < 8
    assert 0 < line.installed <= len(debug) + 80
    assert "debug-data" not in {line.rule for line in reductions(measure([str(path)]))}


def test_the_smallest_mode_is_what_zstd_makes(tmp_path: Path) -> None:
    payload = linked(code=bytes(x * x % 251 for x in range(20000)))
    shipped = entry(payload, 80, mode="lz4")
    path = wheel(tmp_path / "a.whl", {"lib.so": library([(".nv_fatbin", container(shipped))])})
    sizes = measure([str(path)], experiments=Experiments(thorough=True))
    line = {line.rule: line for line in reductions(sizes)}["size-mode"]
    made = zstandard.ZstdCompressor(level=19).compress(payload)
    assert line.installed == len(shipped) - 64 - (len(made) + -len(made) % 8)
    packed = struct.unpack_from("<I", shipped, 16)[0]
    before = len(zlib.compress(shipped[64 : 64 + packed], 6))
    assert line.download == before - len(zlib.compress(made, 6))


@pytest.mark.parametrize(
    "path", [*sorted(GOLDEN.glob("*/calls/*.cubin"))[:6], *sorted(GOLDEN.glob("100/*/*.cubin"))[:4]]
)
def test_a_function_that_is_cut_out_has_the_bytes_of_its_row(path: Path) -> None:
    data = path.read_bytes()
    sizes = measure([str(path)])
    by_name = {row.keys[0]: row.unpacked for row in rows(sizes, ("function",))}
    mangled = [name.decode() for name in sizes.ledger.functions()[1:]]
    assert mangled
    shown = [describe(name)[0] for name in mangled]
    for name in mangled:
        if shown.count(describe(name)[0]) > 1:
            continue  # The row is of several.
        less, gone = without_functions(data, name.__eq__)
        assert gone == {name}
        assert len(data) - len(less) == by_name[describe(name)[0]]
    assert without_functions(data, lambda _: False) == (data, set())


def test_debug_sections_are_cut_out_whole() -> None:
    image = linked(debug=b"x" * 999)
    assert len(without_debug(image)) == len(image) - 999 - 64 - len(".debug_line\0")
    assert without_debug(b"no cubin") == b"no cubin"


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*/debug/m1.cubin")))
def test_what_options_add_is_cut_out_of_real_cubins_and_frames_stay(path: Path) -> None:
    """By the names of a reader that knows no such rule; no section is cut in part."""
    data = path.read_bytes()
    sections = read_sections(data).sections
    wanted = re.compile(rb"(\.nv\.merc)?(\.rela?)?\.(nv_)?debug_(?!frame)")
    gone = [section for section in sections if wanted.match(section.name)]
    assert len(gone) > 5
    assert any(section.name == b".debug_frame" for section in sections)
    less = len(data) - len(without_debug(data))
    # Mercury sections of debug data share the bytes of the plain ones.
    bodies = 64 * len(gone) + len(
        {at for each in gone for at in range(each.offset, each.offset + each.stored)}
    )
    names = sum(2 * len(section.name) + 1 + 24 for section in gone)
    assert bodies < less <= bodies + names


@pytest.mark.parametrize("arch", ["75", "90a", "100"])
def test_frames_alone_are_not_offered(arch: str) -> None:
    """Compilers write .debug_frame without any option."""
    data = (GOLDEN / arch / "calls" / "m0.cubin").read_bytes()
    assert any(section.name == b".debug_frame" for section in read_sections(data).sections)
    assert without_debug(data) == data


def test_functions_of_ptx_are_cut_out() -> None:
    text = b"""//
.version 8.0
.extern .func far;
.visible .entry one(.param .u64 p)
{ // }
  { ret; }
}
.func (.param .b32 r) two(
  .param .b32 a
)
{
  ret;
}
"""
    less, gone = ptx_without_functions(text, "one".__eq__)
    assert gone == {"one"}
    assert b"one" not in less
    assert less.endswith(b"ret;\n}\n")
    assert b".extern .func far;" in less
    less, gone = ptx_without_functions(text, lambda _: True)
    assert gone == {"one", "two"}
    assert less.strip().endswith(b".extern .func far;")


@pytest.mark.parametrize("mode", ["none", "zstd", "lz4"])
def test_what_if(mode: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = "_Z4gemmIiEvv", "_Z4gemmIfEvv", "other"
    text = b".version 8.0\n.target sm_80\n.visible .entry _Z4gemmIiEvv()\n{ ret; }\n"
    fatbin = container(
        entry(linked(80, *names), 80, mode=mode), entry(text, 80, kind=PTX, mode=mode),
        entry(linked(90, "other"), 90, mode=mode),
    )  # fmt: skip
    path = wheel(tmp_path / "a.whl", {"lib.so": library([(".nv_fatbin", fatbin)])})
    assert main([str(path), "--what-if", "gemm<", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["what_if"]
    assert (told["functions"], told["entries"]) == (2, 2)
    sizes = measure([str(path)])
    matching = re.compile("gemm<")
    whole = sum(row.unpacked for row in rows(sizes, ("function",)) if matching.search(row.keys[0]))
    assert told["unpacked_now"] - told["unpacked"] == whole
    saved = told["installed_now"] - told["installed"]
    assert 0 < saved <= whole
    if mode == "none":
        assert abs(saved - whole) < 16
    assert told["download"] < told["download_now"] == path.stat().st_size
    assert main([str(path), "--what-if", "nothing of this name"]) == 0
    assert "No function matches." in capsys.readouterr().out
