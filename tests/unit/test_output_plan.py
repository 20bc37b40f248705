"""No file that a link writes is one that it reads, or is written for two options.

Every option of the table is tried, so that a new one which writes a file without saying so in the
column `writes`, or says so and is not held to the rule, fails here.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.archive_builder import gnu, thin, write
from helpers.cubin_builder import one_kernel

import pylink
from pylink.command.cli import main
from pylink.options.table import LIST, OPTIONS, TEXT, Option

TAKE_FILES = [row for row in OPTIONS if row.takes in (TEXT, LIST) and not row.choices and row.built]
WRITING = [row for row in OPTIONS if row.writes]
PTX = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n"


def name_of(option: Option) -> str:
    return option.long


every_option = pytest.mark.parametrize("option", TAKE_FILES, ids=name_of)
every_output = pytest.mark.parametrize("option", WRITING, ids=name_of)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LIBRARY_PATH", raising=False)
    monkeypatch.setenv("PYLINK_DISABLE_SECTION_DEPLOYMENT", "1")
    Path("a.cubin").write_bytes(one_kernel("a").build())
    return tmp_path


def link(option: Option, value: str, *words: str) -> int:
    """Link with the option, and an output unless that is what it is."""
    output = [] if option.attribute == "output_file" else ["-o", "out"]
    return main(["-arch=sm_80", *words, *output, f"--{option.long}={value}"])


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@every_option
def test_the_table_says_which_options_write(option: Option) -> None:
    link(option, "named", "a.cubin")
    assert Path("named").exists() == bool(option.writes)


@every_option
def test_no_option_destroys_an_input(option: Option, here: Path) -> None:
    before = contents(here)
    link(option, "a.cubin", "a.cubin")
    assert Path("a.cubin").read_bytes() == before["a.cubin"]


def same(name: str) -> str:
    return name


def symbolic(name: str) -> str:
    os.symlink(Path(name).absolute(), "symbolic")
    return "symbolic"


def hard(name: str) -> str:
    os.link(name, "hard")
    return "hard"


def other_way(name: str) -> str:
    Path("below").mkdir()
    os.symlink("..", "below/up")
    return f"below/up/{name}"


def an_input() -> tuple[str, list[str]]:
    return "a.cubin", ["a.cubin"]


def a_large_input() -> tuple[str, list[str]]:
    """One that is looked at more closely before it is read."""
    with Path("large.cubin").open("wb") as stream:
        stream.write(one_kernel("large").build())
        stream.truncate(100 << 20)
    return "large.cubin", ["large.cubin"]


def an_options_file() -> tuple[str, list[str]]:
    Path("options").write_text("-w")
    return "options", ["-optf", "options", "a.cubin"]


def a_nested_options_file() -> tuple[str, list[str]]:
    Path("outer").write_text("-optf inner")
    Path("inner").write_text("-w")
    return "inner", ["-optf", "outer", "a.cubin"]


def a_response_file() -> tuple[str, list[str]]:
    Path("response").write_text("a.cubin")
    return "response", ["@response"]


def a_library() -> tuple[str, list[str]]:
    Path("libx.a").write_bytes(gnu([("b.cubin", one_kernel("b").build())]))
    return "libx.a", ["a.cubin", "-L.", "-lx"]


def a_skipped_library() -> tuple[str, list[str]]:
    a_library()
    Path("first").mkdir()
    Path("first/libx.a").write_bytes(gnu([("text", b"none")]))
    return "first/libx.a", ["a.cubin", "-Lfirst", "-L.", "-lx"]


def a_member() -> tuple[str, list[str]]:
    inside = {"in/2.a": thin(["f.cubin"]), "in/f.cubin": one_kernel("f").build()}
    write(Path(), {"1.a": thin(["in/2.a"]), **inside})
    return "in/f.cubin", ["a.cubin", "1.a"]


def a_compiler() -> tuple[str, list[str]]:
    Path("ptxas").write_text("#!/bin/sh\nexit 1\n")
    Path("ptxas").chmod(0o755)
    Path("k.ptx").write_bytes(PTX)
    return "ptxas", ["k.ptx", "--ptxas-path=ptxas"]


READ = (
    an_input,
    a_large_input,
    an_options_file,
    a_nested_options_file,
    a_response_file,
    a_library,
    a_skipped_library,
    a_member,
    a_compiler,
)


@pytest.mark.parametrize(
    ("read", "way"),
    [
        *((read, same) for read in READ),
        *((read, way) for read in (an_input, a_member) for way in (symbolic, hard, other_way)),
    ],
)
@every_output
def test_nothing_that_is_read_is_written(
    option: Option,
    read: Callable[[], tuple[str, list[str]]],
    way: Callable[[str], str],
    here: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file, words = read()
    name = way(file)
    before = contents(here) if file != "large.cubin" else {}
    assert link(option, name, *words) == 1
    spelling = "-o" if option.attribute == "output_file" else f"--{option.long}"
    message = f"would overwrite an input ({spelling}: '{name}')\n"
    errors = capsys.readouterr().err
    assert message in errors
    assert f"Output file '{file}'" in errors or f"/{file}'" in errors
    if before:
        assert contents(here) == before
    else:
        assert os.path.getsize(file) == 100 << 20
        assert not Path("out").exists()


@every_output
def test_an_options_file_of_a_host_script_is_kept(option: Option) -> None:
    Path("options").write_text("-w")
    words = ["-ghls=lcs-aug", "-optf", "options"]
    assert link(option, "options", *words) == 1
    assert Path("options").read_text() == "-w"


@pytest.mark.parametrize("mistake", [["-arch=sm_1"], ["-lmissing"], ["gone.cubin"], ["--bogus"]])
@every_output
def test_a_link_that_fails_early_destroys_nothing(
    option: Option, mistake: list[str], here: Path
) -> None:
    before = contents(here)
    assert link(option, "a.cubin", "a.cubin", *mistake) != 0
    assert contents(here) == before


@pytest.mark.parametrize("existing", [True, False])
@pytest.mark.parametrize(
    "other", [row for row in WRITING if row.long != "output-file"], ids=name_of
)
@every_output
def test_no_file_is_written_twice(
    option: Option, other: Option, existing: bool, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if option is other:
        return
    os.symlink(".", "here")
    if existing:
        Path("x").write_text("old")
    before = contents(here)
    assert link(option, "x", "a.cubin", f"--{other.long}=here/x") == 1
    assert " both write '" in capsys.readouterr().err
    assert contents(here) == before


def test_devices_and_standard_output_may_be_named_twice() -> None:
    words = ["-arch=sm_80", "a.cubin", "-o", "/dev/null", "--Map=/dev/null", "--time=-"]
    assert main([*words, "--pass-remarks-output=-"]) == 0


def test_remarks_behind_xopt(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(here)
    words = ["-arch=sm_80", "a.cubin", "-o", "out"]
    assert main([*words, "-Xopt", "-pass-remarks-output=a.cubin"]) == 1
    assert main([*words, "-Xopt", "-pass-remarks-output=x", "--Map=x"]) == 1
    errors = capsys.readouterr().err
    assert "Output file 'a.cubin' would overwrite an input" in errors
    assert " both write '" in errors
    assert contents(here) == before


def test_the_files_of_section_folders_are_kept(here: Path) -> None:
    stock = Path(pylink.__file__).parent / "report" / "stock" / "LinkInputs.section"
    Path("own/below").mkdir(parents=True)
    shutil.copy(stock, "own/a.section")
    shutil.copy(stock, "own/below/a.section")
    before = contents(here)
    for words in (
        ["--section-folder=own", "-o", "own/a.section"],
        ["--section-folder-recursive=own", "-o", "out", "--Map=own/below/a.section"],
    ):
        assert main(["-arch=sm_80", "a.cubin", "--profile=p", *words]) == 1
        assert contents(here) == before


def test_the_python_interface(here: Path) -> None:
    before = contents(here)
    for option in WRITING:
        if option.attribute == "output_file":
            named: dict[str, str] = {"output": "a.cubin"}
        else:
            named = {option.attribute: "a.cubin"}
        with pytest.raises(pylink.LinkError, match="would overwrite an input"):
            pylink.link(["a.cubin"], arch="sm_80", **named)  # type: ignore[arg-type]
    with pytest.raises(pylink.LinkError, match="-o and --Map both write"):
        pylink.link(["a.cubin"], arch="sm_80", output="x", Map="x")
    assert contents(here) == before


def test_an_input_with_another_name_is_kept(here: Path) -> None:
    before = contents(here)
    renamed = pylink.Input("a.cubin", name="b")
    for option in WRITING:
        attribute = "output" if option.attribute == "output_file" else option.attribute
        with pytest.raises(pylink.LinkError, match=r"'a\.cubin' would overwrite an input"):
            pylink.link([renamed], arch="sm_80", **{attribute: "a.cubin"})  # type: ignore[arg-type]
    with pytest.raises(pylink.LinkError, match=r"'a\.cubin' would overwrite an input"):
        pylink.dlink([renamed], archs="sm_80", form="cubin", cudadevrt=False, output="a.cubin")
    assert contents(here) == before
    # Its name stands for nothing on the disk.
    Path("b").write_bytes(b"")
    linked = pylink.link([renamed], arch="sm_80", output="b", diag_log="log")
    pylink.link([renamed], arch="sm_80", diag_log="b")
    assert linked.image
    assert Path("a.cubin").read_bytes() == before["a.cubin"]


def test_contents_at_hand_are_no_file() -> None:
    """Their name stands for nothing on the disk."""
    data = Path("a.cubin").read_bytes()
    pylink.link([("a.cubin", data)], arch="sm_80", output="a.cubin", diag_log="log")
    assert Path("a.cubin").read_bytes() != data
