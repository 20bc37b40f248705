"""The command line as a process: streams, exit status, and everything that is not a link."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.compare import compare
from helpers.cubin_builder import one_kernel

import pylink
from pylink import __version__
from pylink.command.cli import LARGE_ARCHIVE, MANY_INPUTS, gains_from_large_pages, main
from pylink.options.commands import COMMANDS
from pylink.options.help import COMMON, full_help_text, help_text, short_help_text
from pylink.options.table import BY_ATTRIBUTE
from pylink.outputs.hostscript import SECTIONS
from pylink.outputs.registerlink import register_text


def run(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(words)
    return status, *capfd.readouterr()


def test_mistakes_go_to_standard_error_and_end_with_1(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(capfd, "-bogus") == (1, "", "pylink fatal   : Unknown option 'bogus'\n")
    said = "pylink fatal   : Unknown arch name '(null)'\n"
    hint = "pylink note    : no target given; use -arch, for example -arch=sm_90\n"
    assert run(capfd, "-v") == (1, "", said + hint)


HELP_WORDS = {
    "": short_help_text,
    "help": short_help_text,
    "--help": short_help_text,
    "help help": short_help_text,
    "help link": lambda: help_text("pylink"),
    "help all": full_help_text,
    "--help all": full_help_text,
}


@pytest.mark.parametrize("asked", HELP_WORDS)
def test_alone_and_asked_for_help_it_helps(
    asked: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = asked.split()
    assert run(capfd, *words) == (0, HELP_WORDS[asked](), "")
    if "--help" in words:
        return
    monkeypatch.setattr(sys, "argv", ["nvlink"])
    assert run(capfd, *words) == (1, "", "nvlink fatal   : Unknown arch name '(null)'\n")


def test_the_first_help_fits_a_screen_and_leads_to_all() -> None:
    """Every command and twenty options, a line for each."""
    lines = short_help_text().splitlines()
    assert len(lines) < 60
    assert max(map(len, lines)) <= 80
    assert len(COMMON) == 20
    for command in COMMANDS:
        assert len([line for line in lines if line.startswith(f"{command} ")]) == 1
    for name in COMMON:
        option = BY_ATTRIBUTE[name.replace("-", "_")]
        spelling = f"-{option.short}" if option.short else f"--{name}"
        assert len([line for line in lines if line.split()[:1] == [spelling]]) == 1
    assert {"pylink help link", "pylink help all"} <= {" ".join(line.split()[:3]) for line in lines}


@pytest.mark.parametrize("topic", [name for name in COMMANDS if name not in ("link", "help")])
def test_help_on_a_command_is_that_of_the_command(
    topic: str, capfd: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capfd, "help", topic)
    assert (status, err) == (0, "")
    # Commands over an index are words behind `dedup`.
    assert f"pylink {topic}" in out or f"pylink {topic.replace('dedup-', 'dedup ')}" in out
    assert run(capfd, "help", *topic.split("-", 1 if topic.startswith("dedup-") else 0)) == (
        status,
        out,
        err,
    )


def test_help_on_options_and_diagnostics(capfd: pytest.CaptureFixture[str]) -> None:
    for spelling in ("--Map", "-Map", "Map", "map-file"):
        status, out, err = run(capfd, "help", spelling)
        if spelling == "map-file":
            assert (status, out, err) == (1, "", "pylink fatal   : Unknown command 'map-file'\n")
        else:
            assert (status, err) == (0, "")
            assert out.startswith("--Map <file>\n")
    for name in ("501", "stack-size", "501-D", "EC501"):
        explained = run(capfd, "--explain", name)
        assert explained == run(capfd, "help", name)
        assert explained[1].startswith("501 stack-size: warning\n")
        assert "cudaDeviceSetLimit" in explained[1]
    assert run(capfd, "-explain=bogus") == (
        1,
        "",
        "pylink fatal   : invalid error number in diagnostic control option: bogus\n",
    )


def test_link_is_the_command_that_may_be_left_out(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(capfd, "link", "-arch=sm_75") == run(capfd, "-arch=sm_75")


def test_called_nvlink_it_says_so_and_has_no_other_commands(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/toolkit/bin/nvlink"])
    assert run(capfd, "-bogus") == (1, "", "nvlink fatal   : Unknown option 'bogus'\n")
    for word in ("inspect", "link"):
        status, _, err = run(capfd, word, "-arch=sm_75", "-o", "unused")
        assert (status, err) == (1, f"nvlink fatal   : Could not open input file '{word}'\n")
    status, out, _ = run(capfd, "--help")
    assert (status, out.splitlines()[0]) == (0, "Usage  : nvlink [options] <objects>")
    status, out, _ = run(capfd, "--version")
    assert (status, out.splitlines()[0]) == (0, "nvlink: an open CUDA device linker")


@pytest.mark.parametrize("spelling", ["-h", "--help", "-help"])
def test_help(capfd: pytest.CaptureFixture[str], spelling: str) -> None:
    status, out, err = run(capfd, "-V", spelling, "-arch=sm_75")
    assert (status, err) == (0, "")
    assert out.startswith("Usage  : pylink [link] [options] <objects>\n")


@pytest.mark.parametrize("spelling", ["-V", "--version", "-version"])
def test_version(capfd: pytest.CaptureFixture[str], spelling: str) -> None:
    status, out, err = run(capfd, "missing", spelling)
    assert (status, err) == (0, "")
    assert f"Version {__version__}\n" in out
    assert "release 13.0, V13.0.88" in out  # what build systems look for in nvlink's


def test_version_of_a_release_that_is_asked_for(capfd: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capfd, "--nvlink-version=13.4", "--version")
    assert "release 13.4, V13.4.92" in out


def test_report_arch_names_the_target(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(capfd, "-report-arch", "-arch", "sm_90a")[2] == (
        "pylink fatal   : Must specify output file with -o option (target: sm_90a)\n"
    )


def test_warnings_of_the_command_line_cannot_be_turned_off(
    capfd: pytest.CaptureFixture[str],
) -> None:
    status, out, err = run(capfd, "-w", "-ghls=lcs-abs", "-ghls=lcs-aug")
    assert (status, out) == (0, SECTIONS)
    assert err == (
        "pylink warning : incompatible redefinition for option 'gen-host-linker-script', "
        "the last value of this option was used\n"
    )


def test_host_script_for_an_existing_one(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "script"
    assert run(capfd, "-ghls=lcs-aug", "-o", str(file)) == (0, "", "")
    assert file.read_text() == (
        "SECTIONS\n{\n\t.nvFatBinSegment : { *(.nvFatBinSegment) }\n"
        "\t__nv_relfatbin : { *(__nv_relfatbin) } \n\t.nv_fatbin : { *(.nv_fatbin) }\n}\n"
    )


def make_tool(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_host_script_in_place_of_the_linkers(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tool(tmp_path, "gcc", "echo ' /x/collect2 -m elf_x86_64 \"-z\" now -pie -lc -o out' >&2")
    make_tool(
        tmp_path,
        "ld",
        """echo 'linker 1.0'
case "$1" in
-V) ;;
*) echo "using internal script for: $*"; echo =====; echo SCRIPT; echo; echo =====;;
esac""",
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert run(capfd, "-ghls") == (0, "SCRIPT\n\n" + SECTIONS, "")
    err = run(capfd, "-ghls", "-v")[2]
    assert "#$ ld --verbose -m elf_x86_64 -z now -pie\n" in err


def test_host_script_without_a_host_linker(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    file = tmp_path / "script"
    assert run(capfd, "-ghls", "-o", str(file)) == (
        1,
        "",
        "pylink fatal   : Host linker script creation failed.\n",
    )
    assert not file.exists()


def test_host_script_that_cannot_be_written(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(capfd, "-ghls=lcs-aug", "-o", str(tmp_path)) == (
        1,
        "",
        f"pylink fatal   : Could not open output file '{tmp_path}'\n"
        "pylink note    : Is a directory\n",
    )


def test_host_script_takes_no_input(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(capfd, "-ghls=lcs-aug", "a")[2] == (
        "pylink fatal   : Input files are not allowed with -ghls option; "
        "use --help for more information\n"
    )


def test_folders_to_list_that_are_not_there(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status, out, err = run(capfd, "--list-rules", "--section-folder", str(tmp_path / "none"))
    assert (status, out) == (1, "")
    assert err == (
        "pylink fatal   : Listing sections and rules failed: Failed to add section search path "
        f"{tmp_path}/none: it is not a directory\n"
    )


def test_register_text_names_files_as_given() -> None:
    assert register_text(
        [("a.cubin", False), ("/b/9+é.o", False), ("../c", False)], "/w d", {}
    ) == (
        "#define NUM_PRELINKED_OBJECTS 3\n"
        "DEFINE_REGISTER_FUNC(_w_d_a_cubin)\n"
        "DEFINE_REGISTER_FUNC(_b_9____o)\n"
        "DEFINE_REGISTER_FUNC(_w_d____c)\n"
    )


def test_closed_and_full_streams_lose_the_text_and_only_a_script_is_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # it hides what is flushed at exit
    command = f'exec "{sys.executable}" -m pylink "$@"'
    for streams in ("2>/dev/full >/dev/full", "2>&- >&-", ">/dev/full", ">&-"):
        for word, status in (("-bogus", 1), ("--version", 0), ("-ghls=lcs-aug", 1)):
            shell = ["sh", "-c", f"{command} {streams}", "sh", word]
            done = subprocess.run(shell, capture_output=True, check=False)
            assert done.returncode == status, (streams, word)
            assert bool(done.stderr) == (status != 0 and "2>" not in streams)


def test_a_bug_is_one_line_that_names_its_place(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr("pylink.pipeline.link", broken)
    status, out, err = run(capfd, "-arch=sm_75", "a", "-o", "o")
    assert (status, out) == (1, "")
    assert err.startswith("pylink fatal   : ")
    assert "KeyError in " in err
    assert "test_cli.py:" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(("stopped", "status"), [(KeyboardInterrupt, 130), (BrokenPipeError, 1)])
def test_what_stops_a_command_says_nothing(
    stopped: type[BaseException],
    status: int,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stop(*_: object) -> None:
        raise stopped

    monkeypatch.setattr("pylink.command.inspection.main", stop)
    assert run(capfd, "inspect", "a.cubin") == (status, "", "")


def test_an_interrupted_link_has_the_status_of_one(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pylink.pipeline.link", interrupt)
    assert run(capfd, "-arch=sm_75", "a", "-o", "o") == (130, "", "")


def test_a_name_that_is_no_utf8_is_shown_by_its_bytes(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pylink", b"-optf", b"\xff"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.stderr == b"pylink fatal   : Could not open options file '\\xff'\n"


@pytest.mark.parametrize("before", ["", "import atexit; atexit.register(print, 'end');"])
def test_the_program_ends_as_programs_do(before: str) -> None:
    """What is still in a buffer is written, and what asked to run at the end does."""
    code = f"import sys; {before} print('begin'); from pylink.startup.program import run; run()"
    for words, status in ((["--version"], 0), (["-bogus"], 1)):
        done = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == status
        lines = done.stdout.splitlines()
        assert lines[0] == "begin"
        assert (lines[-1] == "end") == bool(before)


def test_links_that_large_pages_are_for(tmp_path: Path) -> None:
    archive = tmp_path / "lib.a"
    archive.touch()
    os.truncate(archive, LARGE_ARCHIVE - 1)
    assert not gains_from_large_pages(["a.o", str(archive)])
    os.truncate(archive, LARGE_ARCHIVE)
    assert gains_from_large_pages(["a.o", str(archive)])
    assert not gains_from_large_pages(["gone.a", "a\0.a", "a.o"])
    assert gains_from_large_pages(["a.o"] * MANY_INPUTS)


def test_many_inputs_give_what_a_call_gives(tmp_path: Path) -> None:
    """The program arranges its memory for large links; the output is the same."""
    names = []
    for number in range(MANY_INPUTS):
        names.append(f"{number}.cubin")
        (tmp_path / names[-1]).write_bytes(one_kernel(f"k{number}").build())
    words = [sys.executable, "-m", "pylink", "-arch=sm_80", *names, "-o", "out"]
    subprocess.run(words, cwd=tmp_path, check=True)
    images = [(name, (tmp_path / name).read_bytes()) for name in names]
    image = pylink.link(images, arch="sm_80").image
    assert compare((tmp_path / "out").read_bytes(), image) == []
