"""Whatever names hold and wherever diagnostics go: each format escapes its own way, none fails."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.cubin_builder import Cubin, one_kernel

import pylink

SOURCES = Path(pylink.__file__).parents[1]
PAIR = Path(__file__).parents[1] / "golden" / "100" / "calls"
FORMATS = ("nvlink", "text", "sarif")

# What one can be called, and how a line of text and JSON show it.
NAMES = [
    ("quotes\"'`", "quotes\"'`", "quotes\"'`"),
    ("two\nlines", r"two\nlines", "two\nlines"),
    ("tab\there", r"tab\there", "tab\there"),
    ("cr\rlf", r"cr\rlf", "cr\rlf"),
    ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
    ("\x07bell\x7f", r"\x07bell\x7f", "\x07bell\x7f"),
    ("c1\x9b1m", r"c1\x9b1m", "c1\x9b1m"),
    ("back\\slash", "back\\slash", "back\\slash"),
    ("{symbol} {0} %s", "{symbol} {0} %s", "{symbol} {0} %s"),
    ("no utf-8 \udcff\udc80", r"no utf-8 \xff\x80", r"no utf-8 \xff\x80"),
    ("bidi \u202e\u2066\u2028", r"bidi \u202e\u2066\u2028", "bidi \u202e\u2066\u2028"),
    ("naïve 漢字 \U0001f600", "naïve 漢字 \U0001f600", "naïve 漢字 \U0001f600"),
    ("_Z", "_Z", "_Z"),
    ("_Z99999999999999f", "_Z99999999999999f", "_Z99999999999999f"),
    ("</script><b>&amp;", "</script><b>&amp;", "</script><b>&amp;"),
    ("%0A::error::", "%0A::error::", "%0A::error::"),
]


def using(name: str) -> bytes:
    """A kernel that calls what nobody defines."""
    cubin = Cubin()
    cubin.call(cubin.function("k", kernel=True), cubin.external(name))
    return cubin.build()


def run(folder: Path, *words: str, shell: str = "") -> subprocess.CompletedProcess[bytes]:
    """pylink, with redirections of the shell; never a traceback."""
    program = f"import sys; sys.path[:0] = [{str(SOURCES)!r}]; from pylink.command.cli import main"
    argv = [sys.executable, "-c", f"{program}; sys.exit(main())", *words]
    command = ["bash", "-c", f'exec "$@" {shell}', "bash", *argv] if shell else argv
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert b"Traceback" not in done.stderr + done.stdout
    return done


def decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


@pytest.mark.parametrize(("name", "line", "text"), NAMES)
def test_names_of_any_kind_in_every_format(tmp_path: Path, name: str, line: str, text: str) -> None:
    file = re.sub("/", "-", name) + ".cubin"
    (tmp_path / file).write_bytes(using(name))
    words = ["-arch=sm_80", file, "-o", "out"]
    shown = f"Undefined reference to '{line}' in '{line.replace('/', '-')}.cubin'"
    readable = f"Undefined reference to '{text}' in '{text.replace('/', '-')}.cubin'"
    log, document = tmp_path / "log", tmp_path / "sarif"
    for format in FORMATS:
        reports = [f"--diag-log={log}", f"--sarif-output={document}"]
        done = run(tmp_path, *words, f"--diagnostics_format={format}", *reports)
        assert done.returncode == 255
        printed = decoded(done.stderr)
        if format == "nvlink":
            assert printed == f"pylink error   : {shown}\n"
        elif format == "text":
            assert shown in printed
            assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", printed)
        else:
            (result,) = json.loads(f"[{done.stderr.decode()}]")
            assert result["message"]["text"] == readable
    (entry,) = decoded(log.read_bytes()).splitlines()
    escaped = line.replace("/", "-")
    if "\\" in name or '"' in name:
        escaped = escaped.replace("\\", "\\\\").replace('"', '\\"')
    assert entry == f'E "{escaped}.cubin" 0 0 {shown} (target: sm_80)'
    (run_,) = json.loads(document.read_bytes())["runs"]
    assert run_["results"][0]["message"]["text"] == readable


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("shell", ["2>&-", "2>/dev/full", "2>&- >&-", "<&- 2>&- >&-"])
def test_a_standard_error_that_takes_nothing(tmp_path: Path, format: str, shell: str) -> None:
    (tmp_path / "a.cubin").write_bytes(using("lost"))
    words = ["-arch=sm_80", "a.cubin", "-o", "out", f"--diagnostics_format={format}"]
    assert run(tmp_path, *words, shell=shell).returncode == 255


@pytest.mark.parametrize("shell", ["2>&-", "2>/dev/full"])
def test_a_trace_that_goes_nowhere_costs_the_lines_only(tmp_path: Path, shell: str) -> None:
    words = ["-arch=sm_100", *(str(PAIR / name) for name in ("m0.cubin", "m1.cubin")), "-o", "out"]
    traced = run(tmp_path, *words, "-edbg=33")
    assert b"merc-dedup: " in traced.stderr
    assert b"layout time: " in traced.stderr
    assert run(tmp_path, *words, "-edbg=33", shell=shell).returncode == 0


@pytest.mark.parametrize("format", FORMATS)
def test_a_pipe_that_nobody_reads(tmp_path: Path, format: str) -> None:
    (tmp_path / "a.cubin").write_bytes(using("lost"))
    words = ["-arch=sm_80", "a.cubin", "-o", "out", f"--diagnostics_format={format}"]
    assert run(tmp_path, *words, shell="2> >(exec true)").returncode == 255


@pytest.mark.parametrize("option", ["--diag-log", "--sarif-output"])
@pytest.mark.parametrize("format", FORMATS)
def test_a_report_on_a_full_disk_is_an_error(tmp_path: Path, option: str, format: str) -> None:
    (tmp_path / "a.cubin").write_bytes(using("lost"))
    words = ["-arch=sm_80", "a.cubin", "-o", "out", f"--diagnostics_format={format}"]
    done = run(tmp_path, *words, f"{option}=/dev/full")
    assert done.returncode == 255  # for the link
    assert b"Undefined reference" in done.stderr
    assert b"Writing '/dev/full' failed: No space left on device" in done.stderr


@pytest.mark.parametrize("option", ["--diag-log", "--sarif-output"])
def test_a_good_link_fails_where_its_report_cannot_be_written(tmp_path: Path, option: str) -> None:
    """A log without a line needs no room."""
    (tmp_path / "a.cubin").write_bytes(one_kernel().build())
    done = run(tmp_path, "-arch=sm_80", "a.cubin", "-o", "out", f"{option}=/dev/full")
    assert done.returncode == (option == "--sarif-output")
    assert (tmp_path / "out").exists()
    assert (b"Writing '/dev/full' failed" in done.stderr) == (option == "--sarif-output")


@pytest.mark.parametrize("option", ["--diag-log", "--sarif-output"])
@pytest.mark.parametrize("path", ["no/such/folder/x", ".", ""])
def test_a_report_that_cannot_be_opened_is_fatal(tmp_path: Path, option: str, path: str) -> None:
    (tmp_path / "a.cubin").write_bytes(using("lost"))
    done = run(tmp_path, "-arch=sm_80", "a.cubin", "-o", "out", f"{option}={path}")
    assert done.returncode == 1
    said = f"pylink fatal   : Could not open output file '{path}'\npylink note    : "
    assert done.stderr.startswith(said.encode())


def test_one_file_for_both_reports_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.cubin").write_bytes(using("lost"))
    words = ["-arch=sm_80", "a.cubin", "-o", "out", "--diag-log=x", "--sarif-output=x"]
    done = run(tmp_path, *words)
    assert done.returncode == 1
    assert b"--sarif-output and --diag-log both write 'x'" in done.stderr
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("words", [("inspect",), ("inspect", "--json"), ("dedup",)])
@pytest.mark.parametrize(
    ("shell", "reason"), [(">/dev/full", b"No space left on device\n"), (">&-", b"closed\n")]
)
def test_a_command_whose_result_goes_nowhere_says_so(
    tmp_path: Path, words: tuple[str, ...], shell: str, reason: bytes
) -> None:
    done = run(tmp_path, *words, str(PAIR / "m0.cubin"), shell=shell)
    assert done.returncode == (2 if words[0] == "inspect" else 1)
    assert done.stderr.startswith(b"pylink " + words[0].encode() + b": ")
    assert done.stderr.endswith(reason)


def test_a_reader_that_had_enough_is_no_trouble(tmp_path: Path) -> None:
    words = ("inspect", "--json", *[str(PAIR / "m0.cubin")] * 20)
    done = run(tmp_path, *words, shell="| head -c 1")
    assert done.stderr == b""


@pytest.mark.parametrize("words", [("inspect", "--symbols"), ("inspect", "--json")])
def test_names_reach_an_output_of_any_encoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    (tmp_path / "a.cubin").write_bytes(using("naïve"))
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = run(tmp_path, *words, "a.cubin")
    assert (done.returncode, done.stderr) == (0, b"")
    assert ("naïve" if words[1] == "--symbols" else r"na\u00efve") in done.stdout.decode()
