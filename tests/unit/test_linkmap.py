"""--Map: every section, contribution and symbol, with the reason why it is there or not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from helpers.cubin_builder import (
    COMMON,
    IN_GLOBAL,
    SHT_GLOBAL_INIT,
    WEAK,
    Cubin,
    Section,
    Symbol,
    one_kernel,
)

from pylink.command.cli import main

GOLDEN = Path(__file__).parents[1] / "golden"
LINKS = sorted(path.parent for path in GOLDEN.glob("*/*/exec.nvlink.cubin"))

OUTPUT = re.compile(r" +(0x\w+) +(0x\w+) +(0x\w+) +(\d+)  (\S+)")
INNER = re.compile(r" +(0x\w+|-) +(0x\w+) +(\d+) {6}(.+):\((.+)\)")


def link(place: Path, cubins: dict[str, bytes], *options: str, arch: str = "80") -> str:
    for name, data in cubins.items():
        (place / name).write_bytes(data)
    words = [f"-arch=sm_{arch}", *(str(place / name) for name in cubins), *options]
    assert main([*words, "-o", str(place / "out.cubin"), "--Map", str(place / "map")]) == 0
    return (place / "map").read_text().replace(f"{place}/", "")


def symbols(text: str, heading: str) -> dict[tuple[str, str], str]:
    """The reasons under a heading, by symbol and file."""
    part = text.partition(f"  {heading} symbols\n")[2].partition("\n\n")[0]
    found = {}
    for line in part.splitlines():
        if line.startswith(" " * 16):  # a readable name
            continue
        name, file, reason = re.fullmatch(r" +0x\w+  (\S+)  (\S+): (.+)", line).groups()  # type: ignore[union-attr]  # a line of another form fails the test
        found[name, file] = reason
    return found


def test_why_symbols_are_kept_or_removed(tmp_path: Path) -> None:
    cubin = one_kernel("main")
    cubin.call(1, cubin.external("helper"))
    cubin.function("unused")
    cubin.function("twice", bind=WEAK)
    two = Cubin()
    helper = two.function("helper")
    two.call(helper, two.function("twice", bind=WEAK))
    two.call(two.function("last", kernel=True), helper)
    pointed = two.function("pointed")
    two.take_address(pointed, "v")
    two.symbol(Symbol("common", other=IN_GLOBAL, section=COMMON, value=4, size=4))
    text = link(tmp_path, {"one.cubin": cubin.build(), "two.cubin": two.build()})
    assert symbols(text, "Kept") == {
        ("main", "one.cubin"): "kernel",
        ("helper", "two.cubin"): "called by main",
        ("twice", "one.cubin"): "called by helper",
        ("last", "two.cubin"): "kernel",
        ("pointed", "two.cubin"): "its address is taken",
        ("common", "two.cubin"): "variable",
    }
    assert symbols(text, "Removed") == {
        ("unused", "one.cubin"): "no kernel reaches it",
        ("twice", "two.cubin"): "the definition in one.cubin is linked",
    }


def test_common_symbols_have_the_size_of_the_largest(tmp_path: Path) -> None:
    inputs = {}
    for name, size in (("one", 4), ("two", 40), ("three", 12)):
        cubin = one_kernel(name)
        cubin.symbol(Symbol("pool", other=IN_GLOBAL, section=COMMON, value=4, size=size))
        inputs[f"{name}.cubin"] = cubin.build()
    text = link(tmp_path, inputs)
    with open(tmp_path / "out.cubin", "rb") as stream:
        table = ELFFile(stream).get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        (size,) = (
            iter_symbol["st_size"]
            for iter_symbol in table.iter_symbols()
            if iter_symbol.name == "pool"
        )
    assert f"{size:#12x}  pool  one.cubin: variable\n" in text
    assert symbols(text, "Removed") == {
        ("pool", "two.cubin"): "merged with that of one.cubin",
        ("pool", "three.cubin"): "merged with that of one.cubin",
    }


def test_symbols_have_sizes_and_readable_names(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cubin = one_kernel("_Z4mainPi")
    cubin.function("_Z6unusedv")
    text = link(tmp_path, {"a.cubin": cubin.build()})
    with open(tmp_path / "out.cubin", "rb") as stream:
        table = ELFFile(stream).get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        (size,) = (
            iter_symbol["st_size"]
            for iter_symbol in table.iter_symbols()
            if iter_symbol.name == "_Z4mainPi"
        )
    kept = text.partition("  Kept symbols\n")[2].splitlines()
    assert kept[0] == f"{size:#12x}  _Z4mainPi  a.cubin: kernel"
    assert kept[1].strip() == "main(int *)"
    assert text.splitlines()[-1].strip() == "unused()"
    words = ["-arch=sm_80", str(tmp_path / "a.cubin"), "-o", str(tmp_path / "out.cubin")]
    assert main([*words, "--Map", "-"]) == 0
    assert capfd.readouterr().out.replace(f"{tmp_path}/", "") == text


def test_kernels_that_are_not_selected(tmp_path: Path) -> None:
    cubin = one_kernel("wanted")
    other = cubin.function("other", kernel=True)
    cubin.call(other, cubin.function("helper"))
    text = link(tmp_path, {"a.cubin": cubin.build()}, "--kernels-used=wanted")
    assert symbols(text, "Kept") == {("wanted", "a.cubin"): "kernel"}
    assert symbols(text, "Removed") == {
        ("other", "a.cubin"): "it is not in --kernels-used",
        ("helper", "a.cubin"): "only kernels that are not in --kernels-used reach it",
    }


def test_code_that_debugging_keeps(tmp_path: Path) -> None:
    cubin = one_kernel("kernel")
    cubin.function("unused")
    kept = symbols(link(tmp_path, {"a.cubin": cubin.build()}, "-g"), "Kept")
    assert kept["unused", "a.cubin"] == "all code is kept"


@pytest.mark.parametrize("case", LINKS, ids=lambda case: f"{case.parent.name}-{case.name}")
def test_sections_are_those_of_the_output(case: Path, tmp_path: Path) -> None:
    """Names, offsets and sizes as an ELF reader finds them, and pieces inside of their section."""
    inputs = {path.name: path.read_bytes() for path in sorted(case.glob("m?.cubin"))}
    text = link(tmp_path, inputs, "--merc-dedup=off", arch=case.parent.name)
    sections = text.split("\n\n")[1].splitlines()[1:]
    listed = [match.groups() for line in sections if (match := OUTPUT.fullmatch(line))]
    pieces = [match.groups() for line in sections if (match := INNER.fullmatch(line))]
    assert len(listed) + len(pieces) == len(sections)
    with open(tmp_path / "out.cubin", "rb") as stream:
        elf = ELFFile(stream)
        found = [
            (section.name, section["sh_size"], max(section["sh_addralign"], 1))
            for section in elf.iter_sections()
        ][1:]
        assert [(name, int(size, 16), int(align)) for _, _, size, align, name in listed] == found
        offsets = {s.name: s["sh_offset"] for s in elf.iter_sections() if s["sh_size"]}
        assert {name: int(at, 16) for at, _, size, _, name in listed if int(size, 16)} == offsets
        table = elf.get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        functions = {s.name for s in table.iter_symbols() if s["st_info"]["type"] == "STT_FUNC"}
    assert {file for *_, file, _ in pieces} <= set(inputs)
    room = 0
    for line in sections:
        if match := OUTPUT.fullmatch(line):
            room = int(match[3], 16)
        elif (match := INNER.fullmatch(line)) and match[1] != "-":
            assert int(match[1], 16) + int(match[2], 16) <= room, line
    kept = {name for name, _ in symbols(text, "Kept")}
    removed = {name for name, _ in symbols(text, "Removed")}
    # Functions of the runtime stay undefined.
    assert functions - kept <= {"vprintf", "__assertfail", "malloc", "free"}
    assert not functions & (removed - kept)


def test_a_map_that_cannot_be_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.cubin").write_bytes(one_kernel().build())
    words = ["-arch=sm_80", str(tmp_path / "a.cubin"), "-o", str(tmp_path / "o")]
    others = ["--depfile", str(tmp_path / "d"), f"--pass-remarks-output={tmp_path / 'r.yaml'}"]
    for more in ([], others):
        assert main([*words, "--Map", "/dev/full", *more]) == 1
        assert "Writing '/dev/full' failed: No space left on device" in capfd.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.cubin", "o"]


def test_a_link_that_fails_has_no_map(tmp_path: Path) -> None:
    (tmp_path / "a.cubin").write_bytes(one_kernel().build())
    words = ["-arch=sm_80", str(tmp_path / "a.cubin"), "-o", "/dev/full"]
    assert main([*words, "--Map", str(tmp_path / "map")]) == 1
    assert not (tmp_path / "map").exists()


def test_pieces_have_their_offsets(tmp_path: Path) -> None:
    first, second = one_kernel("k"), Cubin()
    for cubin, size in ((first, 6), (second, 3)):
        cubin.section(Section(".nv.global.init", SHT_GLOBAL_INIT, bytes(size), 3, align=4))
    text = link(tmp_path, {"a": first.build(), "b": second.build()})
    pieces = [match.groups() for line in text.splitlines() if (match := INNER.fullmatch(line))]
    assert [piece for piece in pieces if piece[4] == ".nv.global.init"] == [
        ("0x0", "0x6", "4", "a", ".nv.global.init"),
        ("0x8", "0x3", "4", "b", ".nv.global.init"),
    ]
    # The link writes attributes anew, and those of the input are nowhere in them.
    attributes = [piece for piece in pieces if piece[4] == ".nv.info.k"]
    assert attributes == [("-", "0x4", "4", "a", ".nv.info.k")]


def test_names_stay_on_one_line(tmp_path: Path) -> None:
    text = link(tmp_path, {"a.cubin": one_kernel("new\nline").build()})
    assert "  new\\nline  a.cubin: kernel\n" in text
