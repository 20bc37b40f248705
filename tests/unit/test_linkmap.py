"""--Map: every section, contribution and symbol, with the reason why it is there or not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from helpers.cubin_builder import WEAK, Cubin, one_kernel

from pylink.cli import main

GOLDEN = Path(__file__).parents[1] / "golden"
LINKS = sorted(path.parent for path in GOLDEN.glob("*/*/exec.nvlink.cubin"))

OUTPUT = re.compile(r" +(0x\w+) +(0x\w+) +(0x\w+) +(\d+)  (\S+)")
INNER = re.compile(r" +(0x\w+) +(0x\w+) +(\d+) {6}(.+):\((.+)\)")


def link(place: Path, cubins: dict[str, bytes], *options: str, arch: str = "80") -> str:
    for name, data in cubins.items():
        (place / name).write_bytes(data)
    words = [f"-arch=sm_{arch}", *(str(place / name) for name in cubins), *options]
    assert main([*words, "-o", str(place / "out.cubin"), "--Map", str(place / "map")]) == 0
    return (place / "map").read_text().replace(f"{place}/", "")


def symbols(text: str, heading: str) -> dict[tuple[str, str], str]:
    """The reasons under a heading, by symbol and file."""
    part = text.partition(f"{heading} symbols\n")[2].partition("\n\n")[0]
    found = {}
    for line in part.splitlines():
        name, file, reason = re.fullmatch(r"  (\S+)  (\S+): (.+)", line).groups()  # type: ignore[union-attr]  # a line of another form fails the test
        found[name, file] = reason
    return found


def test_why_symbols_are_kept_or_removed(tmp_path: Path) -> None:
    one = one_kernel("main")
    one.call(one.find(".text.main") and 1, one.external("helper"))
    one.function("unused")
    one.function("twice", bind=WEAK)
    two = Cubin()
    helper = two.function("helper")
    two.call(helper, two.function("twice", bind=WEAK))
    text = link(tmp_path, {"one.cubin": one.build(), "two.cubin": two.build()})
    assert symbols(text, "Kept") == {
        ("main", "one.cubin"): "kernel",
        ("helper", "two.cubin"): "called by main",
        ("twice", "one.cubin"): "called by helper",
    }
    assert symbols(text, "Removed") == {
        ("unused", "one.cubin"): "no kernel reaches it",
        ("twice", "two.cubin"): "the definition in one.cubin is linked",
    }


def test_kernels_that_are_not_selected(tmp_path: Path) -> None:
    cubin = one_kernel("wanted")
    other = cubin.function("other", kernel=True)
    cubin.call(other, cubin.function("helper"))
    text = link(tmp_path, {"a.cubin": cubin.build()}, "--kernels-used=wanted")
    assert symbols(text, "Kept") == {("wanted", "a.cubin"): "kernel"}
    assert symbols(text, "Removed") == {
        ("other", "a.cubin"): "the kernel is not selected",
        ("helper", "a.cubin"): "only kernels that are not selected reach it",
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
    sections = text.partition("\n\n")[0].splitlines()[1:]
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
    kept = {name for name, _ in symbols(text, "Kept")}
    removed = {name for name, _ in symbols(text, "Removed")}
    # Functions of the runtime stay undefined.
    assert functions - kept <= {"vprintf", "__assertfail", "malloc", "free"}
    assert not functions & (removed - kept)


def test_a_map_that_cannot_be_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.cubin").write_bytes(one_kernel().build())
    words = ["-arch=sm_80", str(tmp_path / "a.cubin"), "-o", str(tmp_path / "o")]
    assert main([*words, "--Map", "/dev/full"]) == 1
    assert "Writing '/dev/full' failed: No space left on device" in capfd.readouterr().err


def test_names_stay_on_one_line(tmp_path: Path) -> None:
    text = link(tmp_path, {"a.cubin": one_kernel("new\nline").build()})
    assert "  new\\nline  a.cubin: kernel\n" in text
