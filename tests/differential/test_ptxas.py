"""PTX inputs give what nvlink's own compiler makes of them, byte for byte."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from helpers import oracle
from helpers.compare import compare
from helpers.lto_sources import ALONE, LIBRARY, USER, write_fatbin, write_host_object

from pylink.command.cli import main

pytestmark = oracle.needs_oracle

ARCHES = ("75", "80", "90", "90a", "100", "103a", "120")

OPTIONS = """
-maxrregcount=32
-Xptxas=-O1
-Xptxas=--opt-level=2,-v
-Xptxas='-O1 -v',--warn-on-spills
-g
-g -suppress-debug-info
-device-stack-protector=true
-device-stack-protector=false
-split-compile=2
-split-compile-extended=2
-Xnvvm=-opt=0
-v
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, source in (("library", LIBRARY), ("alone", ALONE)):
        Path(f"{name}.ptx").write_text(oracle.compile_ptx(source, "75"))
    return tmp_path


def check(folder: Path, arch: str, words: list[str]) -> str:
    """Link with both, compare image and table of -time; what pylink printed is left to the test."""
    argv = [f"-arch=sm_{arch}", *words]
    expected = oracle.run_nvlink([*argv, "-o", "theirs", "-time=t1"], folder, "theirs")
    assert main([*argv, "-o", "ours", "-time=t2"]) == expected.code
    if expected.image is not None:
        assert compare(Path("ours").read_bytes(), expected.image) == []
    else:
        assert not Path("ours").exists()
    rows, wanted = (
        re.sub(r"\d+\.\d{4} , ms", "TIME", Path(table).read_text()) for table in ("t2", "t1")
    )
    assert rows == wanted
    return expected.stderr


@pytest.mark.parametrize("arch", ARCHES)
def test_ptx_files(arch: str, folder: Path) -> None:
    Path("user.cubin").write_bytes(oracle.compile(USER, arch))
    check(folder, arch, ["library.ptx"])
    check(folder, arch, ["alone.ptx", "user.cubin", "library.ptx"])
    check(folder, arch, ["-r", "library.ptx", "user.cubin"])


@pytest.mark.parametrize("line", OPTIONS.strip().splitlines())
@pytest.mark.parametrize("arch", ["90", "100"])
def test_options(line: str, arch: str, folder: Path) -> None:
    check(folder, arch, [*shlex.split(line), "alone.ptx", "library.ptx"])


@pytest.mark.parametrize("arch", ["75", "80", "90", "100"])
def test_ptx_of_fat_binaries(arch: str, folder: Path) -> None:
    """Options that the source was compiled with stand in the entry, and count."""
    for flags in ((), ("-lineinfo",), ("-maxrregcount=64", "-Xptxas=-O2")):
        file = write_fatbin(folder, "library", "compute_75", flags)
        check(folder, arch, [file])
        check(folder, arch, ["-maxrregcount=32", file])
    check(folder, arch, [write_host_object(folder, "library", "compute_75")])


def test_debug_output_names_no_file_of_this_process(folder: Path) -> None:
    assert main(["-arch=sm_90", "-g", "alone.ptx", "library.ptx", "-o", "ours"]) == 0
    first = Path("ours").read_bytes()
    assert b"elf.o\0ptxas\0" in first
    with open("alone.ptx", "rb"):  # another number for the next file that is opened
        assert main(["-arch=sm_90", "-g", "alone.ptx", "library.ptx", "-o", "ours"]) == 0
    assert Path("ours").read_bytes() == first


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("st.global.u32", "st.globl.u32"), r"error   : bad.ptx, line \d+: Unknown modifier"),
        (("ret;", "ret; }"), r"error   : bad.ptx, line \d+: Parsing error near '}'"),
        ((".target sm_75", ".target sm_121"), "error   : bad.ptx: SM version specified by"),
        ((".version 9.0", ".version 99.0"), r"error   : bad.ptx, line \d+: Unsupported .version"),
    ],
)
def test_malformed_ptx(
    change: tuple[str, str], message: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = Path("alone.ptx").read_text()
    assert change[0] in text
    Path("bad.ptx").write_text(text.replace(*change))
    check(folder, "90", ["library.ptx", "bad.ptx"])
    *_, first, last = capfd.readouterr().err.splitlines()
    assert re.match(f"pylink {message}", first)
    assert last.startswith("pylink fatal   : 'bad.ptx' could not be compiled: ")


def test_what_ptxas_says_is_shown(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    expected = check(folder, "90", ["-Xptxas=-v", "-maxrregcount=8", "alone.ptx"])
    text = capfd.readouterr().err

    def without_times(printed: str) -> list[str]:
        return [line for line in printed.splitlines() if "Compile time" not in line]

    assert without_times(text) == without_times(expected)
    assert "ptxas info    : Used" in text
