"""PTX inputs with a stand-in for ptxas: its arguments, its messages, the table of -time."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.cubin_builder import one_kernel
from helpers.fake_tool import fake_tool
from helpers.fatbin_builder import PTX as PTX_ENTRY
from helpers.fatbin_builder import container, entry
from helpers.timing_rows import read_rows
from hypothesis import given
from hypothesis import strategies as st

import pylink
from pylink.command.cli import main
from pylink.facts.target import Target
from pylink.options.model import Options
from pylink.options.table import Value
from pylink.subtools import messages, programs
from pylink.subtools.ptxas import CompileRequest, entry_options, ptxas_arguments
from pylink.subtools.toolnote import remove_file_names
from pylink.timing import HEADER

ARCH = "sm_90"
PTX = b"//\n.version 9.0\n.target sm_90\n.address_size 64\n"

Link = Callable[..., int]


def cubin(name: str, arch: str = ARCH) -> bytes:
    """A cubin of one kernel, for `arch`."""
    made = one_kernel(name)
    made.e_flags = Target(arch).elf_flags
    return made.build()


@pytest.fixture
def link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Link:
    """Links with a ptxas whose body is given, in a directory with a few PTX files."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "c"):
        Path(f"{name}.ptx").write_bytes(PTX + f"// {name}\n".encode())
        Path(f"{name}.made").write_bytes(cubin(f"kernel_{name}"))

    def run(body: str, *words: str) -> int:
        tool = fake_tool(tmp_path / "tools" / "ptxas", body)
        return main([f"-arch={ARCH}", "-o", "out", f"--ptxas-path={tool}", *words])

    return run


# Gives for each PTX file the cubin beside it.
COMPILE = 'cp "$(tail -c 2 "$in" | head -c 1).made" "$out"\n'


def words(values: dict[str, Value], *, options: str = "", relocatable: bool = True) -> str:
    request = CompileRequest("", "", "", b"", ARCH, options=options, relocatable=relocatable)
    return shlex.join(ptxas_arguments(request, Options(values)))


def test_arguments() -> None:
    assert words({}) == "-arch sm_90 -m 64 -c"
    assert words({}, relocatable=False) == "-arch sm_90 -m 64"
    assert words({"debug": True}) == "-arch sm_90 -m 64 -c -g"
    assert words({"debug": True, "suppress_debug_info": True}) == "-arch sm_90 -m 64 -c"
    defaults: dict[str, Value] = {"split_compile": 1, "Ofast_compile": "0"}
    assert words(defaults) == "-arch sm_90 -m 64 -c"
    given: dict[str, Value] = {"maxrregcount": 32, "split_compile": 0, "Ofast_compile": "mid"}
    assert words(given) == "-arch sm_90 -m 64 -c -maxrregcount 32 -split-compile 0 -Ofc mid"
    protect: dict[str, Value] = {"device_stack_protector": False}
    assert words(protect) == "-arch sm_90 -m 64 -c -device-stack-protector false"
    for items in (("-O1", "-v"), ("-O1 -v",), (" -O1", "'-v'")):
        assert words({"Xptxas": items}) == "-arch sm_90 -m 64 -c -O1 -v"


def test_options_of_an_entry_come_before_those_of_the_command_line() -> None:
    text = "-O2 --compile-only  -maxrregcount=64 \0"
    assert words({"maxrregcount": 32}, options=text.rstrip("\0")) == (
        "-arch sm_90 -m 64 -c -O2 -maxrregcount=64 -maxrregcount 32"
    )


def test_an_entry_cannot_choose_files_or_the_target() -> None:
    text = "-v -o /etc/passwd --output-file=x -optf f -arch sm_20 -c --generate-line-info"
    assert entry_options(text) == ["-v", "--generate-line-info"]
    assert entry_options("'open quote") == ["'open", "quote"]
    assert entry_options("-O3 -o") == ["-O3"]
    assert entry_options("-m 32 --machine=32 --gpu-name sm_20 --options-file=f -w") == ["-w"]


def test_what_pads_a_text_is_not_compiled(link: Link) -> None:
    Path("p.ptx").write_bytes(PTX + b"// a\n" + bytes(3))
    assert link('wc -c < "$in" > size\n' + COMPILE, "p.ptx") == 0
    assert int(Path("size").read_text()) == len(PTX) + 5


def test_cubins_take_the_place_of_their_ptx(link: Link) -> None:
    Path("d.cubin").write_bytes(cubin("kernel_d"))
    assert link(COMPILE, "b.ptx", "d.cubin", "a.ptx") == 0
    cubins = [(f"{name}.made", Path(f"{name}.made").read_bytes()) for name in "ba"]
    cubins.insert(1, ("d.cubin", Path("d.cubin").read_bytes()))
    assert Path("out").read_bytes() == pylink.link(cubins, arch=ARCH).image


@pytest.mark.parametrize("mode", ["none", "zstd"])
def test_padding_behind_an_entry_is_no_ptx(link: Link, mode: str) -> None:
    text = Path("a.ptx").read_bytes() + bytes(3)
    Path("a.fatbin").write_bytes(container(entry(text, 90, kind=PTX_ENTRY, mode=mode)))
    assert link(COMPILE, "a.fatbin") == 0
    made = pylink.link([("a.made", Path("a.made").read_bytes())], arch=ARCH).image
    assert Path("out").read_bytes() == made


def test_rows_of_the_table_come_in_the_order_of_the_inputs(link: Link) -> None:
    # The first takes longest, so that it ends last.
    slow = 'case "$(tail -c 2 "$in")" in c) sleep 0.3;; esac\n'
    assert link(slow + COMPILE, "-time=t", "c.ptx", "./a.ptx", "b.ptx") == 0
    rows = read_rows(Path("t").read_text())
    assert [row.source for row in rows] == ["c.ptx", "./a.ptx", "b.ptx"]
    assert [row.inputs for row in rows] == ["c.ptx", "./a.ptx", "b.ptx"]
    assert {(row.phase, row.output, row.arch, row.tool) for row in rows} == {
        ("ptxas", "", ARCH, "nvlink")
    }


def test_rows_survive_a_later_error_and_a_failed_run_has_none(
    link: Link, capfd: pytest.CaptureFixture[str]
) -> None:
    fails = 'case "$(tail -c 2 "$in")" in b) exit 1;; esac\n'
    assert link(fails + COMPILE, "-time=t", "a.ptx", "b.ptx", "c.ptx") == 1
    assert [row.source for row in read_rows(Path("t").read_text())] == ["a.ptx"]
    assert not Path("out").exists()
    assert "'b.ptx' could not be compiled: " in capfd.readouterr().err
    assert link(COMPILE, "-time=u", "a.ptx", "a.ptx") == 1
    assert len(read_rows(Path("u").read_text())) == 2


def test_no_row_without_a_run(link: Link) -> None:
    assert link(COMPILE, "-time=t", "a.made") == 0
    assert Path("t").read_text() == HEADER


def test_errors_name_the_file_and_the_line(link: Link, capfd: pytest.CaptureFixture[str]) -> None:
    body = """
echo "ptxas $in, line 29; error   : Unknown modifier '.globl'"
echo "ptxas $in, line 31; fatal   : Parsing error near '{': syntax error"
echo "ptxas fatal   : Unresolved extern function 'f' in $in"
echo "ptxas warning : something"
echo "ptxas fatal   : Ptx assembly aborted due to errors"
exit 255
"""
    assert link(body, "a.ptx") == 1
    *lines, last = capfd.readouterr().err.splitlines()
    assert lines == [
        "pylink error   : a.ptx, line 29: Unknown modifier '.globl'",
        "pylink error   : a.ptx, line 31: Parsing error near '{': syntax error",
        "pylink error   : a.ptx: Unresolved extern function 'f' in a.ptx",
        "ptxas warning : something",
    ]
    assert last.startswith("pylink fatal   : 'a.ptx' could not be compiled: /")
    assert last.endswith("/tools/ptxas ended with status 255")


def test_errors_have_their_line_in_the_text_format(
    link: Link, capfd: pytest.CaptureFixture[str]
) -> None:
    body = 'echo "ptxas $in, line 2; error : Bad"; exit 1'
    assert link(body, "--diagnostics_format=text", "a.ptx") == 1
    assert capfd.readouterr().err.startswith("a.ptx(2): error: ")


def test_every_failing_file_is_reported(link: Link, capfd: pytest.CaptureFixture[str]) -> None:
    assert link('echo "ptxas $in, line 1; error : Bad"; exit 1', "a.ptx", "b.ptx") == 1
    lines = capfd.readouterr().err.splitlines()
    assert lines[:2] == [f"pylink error   : {name}.ptx, line 1: Bad" for name in "ab"]
    assert len(lines) == 3


def test_what_ptxas_prints_is_shown_as_it_is(link: Link, capfd: pytest.CaptureFixture[str]) -> None:
    body = """
echo "ptxas $in, line 3; warning : Odd"
echo "ptxas info    : 0 bytes gmem"
echo "    0 bytes stack frame"
"""
    for quiet in ((), ("-w",), ("-Werror",)):
        assert link(body + COMPILE, "a.ptx", *quiet) == 0
        assert capfd.readouterr().err.splitlines() == [
            "ptxas a.ptx, line 3; warning : Odd",
            "ptxas info    : 0 bytes gmem",
            "    0 bytes stack frame",
        ]


def test_a_hanging_ptxas(link: Link, capfd: pytest.CaptureFixture[str]) -> None:
    assert link("exec sleep 60", "a.ptx", "--tool-timeout=1") == 1
    assert "ptxas did not end in time and was stopped; see --tool-timeout" in capfd.readouterr().err
    assert link(COMPILE, "a.ptx", "--tool-timeout=-1") == 1
    assert "Invalid argument for option '--tool-timeout'" in capfd.readouterr().err
    assert link(COMPILE, "a.ptx", "--tool-timeout=0") == 0


def test_no_ptxas(
    link: Link, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(programs, "wheel_directories", lambda: [])
    monkeypatch.setattr(programs, "toolkits", lambda: [])
    monkeypatch.setenv("PATH", "")
    assert main([f"-arch={ARCH}", "-o", "out", "a.ptx"]) == 1
    assert capfd.readouterr().err == (
        "pylink fatal   : PTX in 'a.ptx' needs ptxas, which was not found; install it with "
        "\"pip install 'pylink-cuda[cuda]'\" or name it with --ptxas-path\n"
    )
    assert main([f"-arch={ARCH}", "-o", "out", "a.ptx", "--ptxas-path=/no/ptxas"]) == 1
    assert "/no/ptxas cannot be started: No such file or directory" in capfd.readouterr().err
    assert not Path("out").exists()


def test_a_ptxas_with_much_to_say(
    link: Link, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(messages, "MAX_LINES", 5)
    assert link(f"yes said | head -n 8; {COMPILE}", "a.ptx") == 0
    said = capfd.readouterr().err.splitlines()
    assert said == ["said"] * 5 + ["3 more lines of the compiler are omitted"]


def test_a_ptxas_that_makes_no_cubin(link: Link, capfd: pytest.CaptureFixture[str]) -> None:
    assert link('echo junk > "$out"', "a.ptx") == 1
    assert "'a.ptx'" in capfd.readouterr().err
    assert not Path("out").exists()


def test_too_many_digits_of_registers(link: Link, capfd: pytest.CaptureFixture[str]) -> None:
    assert link(COMPILE, "a.ptx", "-maxrregcount=1000") == 1
    assert capfd.readouterr().err == (
        "pylink fatal   : Invalid argument for option '-maxrregcount'\n"
    )
    assert link(COMPILE, "a.made", "-maxrregcount=1000") == 0


def test_a_ptx_file_takes_no_part_before_sm_90(
    link: Link, capfd: pytest.CaptureFixture[str]
) -> None:
    assert link(COMPILE, "a.ptx") == 0
    assert b"kernel_a" in Path("out").read_bytes()
    for value in ("75", "89"):
        Path("a.made").write_bytes(cubin("kernel_a", f"sm_{value}"))
        tool = fake_tool(Path("tools/ptxas").absolute(), COMPILE)
        assert main([f"-arch=sm_{value}", "-o", "o", f"--ptxas-path={tool}", "a.ptx"]) == 0
        assert b"kernel_a" not in Path("o").read_bytes()
        assert f"not for sm_{value}" in capfd.readouterr().err


def test_nothing_is_left_in_the_temporary_directory(
    link: Link, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    assert link(COMPILE, "a.ptx", "b.ptx") == 0
    assert link("exit 1", "a.ptx", "b.ptx") == 1
    assert list(folder.iterdir()) == []


def test_a_link_of_cubins_loads_none_of_this(link: Link) -> None:
    code = (
        "import sys; from pylink.command.cli import main; main(sys.argv[1:]);"
        "print([name for name in sys.modules if 'subprocess' in name or 'subtools' in name])"
    )
    argv = [sys.executable, "-c", code, f"-arch={ARCH}", "-o", "out", "a.made", "-time=t"]
    assert subprocess.run(argv, capture_output=True, check=True).stdout == b"[]\n"


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_other_files_keep_their_bytes(before: bytes, after: bytes) -> None:
    data = before + b"/proc/self/fd/7" + after
    assert remove_file_names(data, "/proc/self/fd/7", "/proc/self/fd/8") == data
    header = b"\x7fELF" + bytes(36) + (64).to_bytes(8, "little") + bytes(12) + b"\x02\0"
    assert remove_file_names(header + data, "/proc/self/fd/7", "/proc/self/fd/8") == header + data


def test_a_compiler_of_another_release_is_noted(
    link: Link, capfd: pytest.CaptureFixture[str]
) -> None:
    body = 'test "$last" = --version && echo "release 13.0, V13.0.88" && exit\n' + COMPILE
    text = "--diagnostics_format=text"
    for words, noted in ((("--nvlink-version=13.2",), True), (("--nvlink-version=13.0",), False)):
        assert link(body, *words, text, "a.ptx") == 0
        said = capfd.readouterr().err
        assert ("of CUDA 13.0, not of 13.2" in said) == noted
    assert link(body, text, "a.ptx") == 0
    assert "is compiled by" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("there", "wanted", "found"),
    [
        (("13.5", "13.2", "13.3"), "13.3", "13.3"),
        (("13.5", "12.9", "13.3"), "13.2", "13.3"),
        (("13.10", "13.9"), "13.8", "13.9"),  # 13.10 is newer than 13.9
        (("12.8", "12.9", None), "13.0", "12.9"),
        ((None,), "13.0", None),
    ],
)
def test_the_compiler_of_the_nearest_release_is_taken(
    there: tuple[str | None, ...], wanted: str, found: str | None, tmp_path: Path
) -> None:
    tools = []
    for number, release in enumerate(there):
        tool = tmp_path / str(number)
        tool.write_text(
            "#!/bin/sh\n" + (f'echo "release {release}, V{release}.1"' if release else "")
        )
        tool.chmod(0o755)
        tools.append(str(tool))
    assert programs.nearest_release(tools, wanted) == tools[there.index(found)]
    assert programs.nearest_release([], wanted) is None
