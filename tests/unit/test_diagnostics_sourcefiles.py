"""Which source lines are shown: what debug data of an input names is never trusted."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest
from helpers.cubin_builder import Cubin
from helpers.line_program import Lines, Row

import pylink
from pylink.command.cli import main
from pylink.diagnostics.record import Source
from pylink.diagnostics.sourcefiles import (
    IRREGULAR,
    MAX_FILE_SIZE,
    MAX_LINE_SIZE,
    OUTSIDE,
    TOO_LARGE,
    TOO_LONG,
    SourceFiles,
    Withheld,
)

SECRET = "hunter2"
R_CALL = 58


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a source file, beside others with secrets and inputs."""
    for name in ("build", "build/.git", "inputs", "secrets", "extra"):
        (tmp_path / name).mkdir()
    (tmp_path / "build" / "k.cu").write_bytes(b"first\nsecond\r\nthird")
    (tmp_path / "inputs" / "i.cu").write_text("beside an input\n")
    (tmp_path / "extra" / "e.cu").write_text("extra\n")
    (tmp_path / "build" / ".git" / "config").write_text(SECRET)
    (tmp_path / "secrets" / "key").write_text(SECRET)
    (tmp_path / "buildings").write_text(SECRET)
    (tmp_path / "build" / "link.cu").symlink_to(tmp_path / "secrets" / "key")
    (tmp_path / "build" / "inner.cu").symlink_to("k.cu")
    (tmp_path / "build" / "out").symlink_to(tmp_path / "secrets")
    os.mkfifo(tmp_path / "build" / "fifo")
    monkeypatch.chdir(tmp_path / "build")
    return tmp_path


def files(here: Path) -> SourceFiles:
    inputs = ["k.cubin", str(here / "inputs" / "a.cubin")]
    return SourceFiles([str(here / "extra")], inputs=inputs)


@pytest.mark.parametrize(
    ("path", "line", "text"),
    [
        ("k.cu", 1, "first"),
        ("k.cu", 2, "second"),
        ("k.cu", 3, "third"),
        ("k.cu", 4, None),
        ("k.cu", 0, None),
        ("k.cu", -1, None),
        ("k.cu", 1 << 40, None),
        ("../build/./k.cu", 1, "first"),
        ("inner.cu", 1, "first"),
        ("{here}/build/k.cu", 1, "first"),
        ("{here}/inputs/i.cu", 1, "beside an input"),
        ("{here}/extra/e.cu", 1, "extra"),
        ("missing.cu", 1, None),
        ("nul\0.cu", 1, None),
        ("k.cu/x", 1, None),
    ],
)
def test_lines_of_plausible_files(here: Path, path: str, line: int, text: str | None) -> None:
    assert files(here).line(Source(path.format(here=here), line)) == text


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/etc/passwd", OUTSIDE),
        ("/proc/self/environ", OUTSIDE),
        ("/proc/kmsg", OUTSIDE),
        ("/dev/stdin", OUTSIDE),
        ("/no/such/file", OUTSIDE),
        ("../secrets/key", OUTSIDE),
        ("{here}/inputs/../secrets/key", OUTSIDE),
        ("{here}/buildings", OUTSIDE),
        ("link.cu", OUTSIDE),
        ("out/key", OUTSIDE),
        (".git/config", OUTSIDE),
        ("fifo", IRREGULAR),
        (".", OUTSIDE),
        ("../inputs/.", OUTSIDE),
    ],
)
def test_what_is_withheld(here: Path, path: str, reason: str) -> None:
    with pytest.raises(Withheld, match=f"^{reason}$"):
        files(here).line(Source(path.format(here=here), 1))


def test_nothing_is_looked_up_outside(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = files(here)
    for name in ("stat", "lstat", "open", "readlink"):
        monkeypatch.setattr(os, name, lambda *words, **more: pytest.fail("looked up"))
    with pytest.raises(Withheld):
        known.line(Source("/net/host/key", 1))


def test_limits(here: Path) -> None:
    known = files(here)
    (here / "build" / "line.cu").write_bytes(
        b"x" * MAX_LINE_SIZE + b"\n" + b"x" * (MAX_LINE_SIZE + 1)
    )
    assert known.line(Source("line.cu", 1)) == "x" * MAX_LINE_SIZE
    with pytest.raises(Withheld, match=TOO_LONG):
        known.line(Source("line.cu", 2))
    os.truncate(here / "build" / "line.cu", MAX_FILE_SIZE + 1)
    with pytest.raises(Withheld, match=TOO_LARGE):
        files(here).line(Source("line.cu", 1))


def test_folders_that_would_open_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds in containers often run at the root of all files."""
    monkeypatch.chdir("/")
    known = SourceFiles(inputs=["a.cubin", "/b.cubin"], directories=["/"])
    for path in ("/etc/passwd", "etc/passwd", "proc/self/environ"):
        with pytest.raises(Withheld):
            known.line(Source(path, 1))
    asked = SourceFiles(["/"])
    assert asked.line(Source("/etc/passwd", 1))
    assert asked.line(Source("/proc/self/environ", 1)) is None  # it says that it has 0 bytes
    with pytest.raises(Withheld):
        asked.line(Source("/dev/zero", 1))


def test_files_that_are_asked_for_again_are_read_once(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = files(here)
    assert known.line(Source("k.cu", 1)) == "first"
    monkeypatch.setattr(os, "open", lambda *words: pytest.fail("opened again"))
    assert known.line(Source("k.cu", 2)) == "second"


def test_a_deleted_working_directory(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "gone").mkdir()
    monkeypatch.chdir(here / "gone")
    (here / "gone").rmdir()
    known = files(here)
    assert known.line(Source(f"{here}/extra/e.cu", 1)) == "extra"
    assert known.line(Source("k.cu", 1)) is None
    monkeypatch.chdir(here)


def hostile(path: str) -> bytes:
    """A cubin whose debug data says that its undefined reference stands in this file."""
    cubin = Cubin()
    kernel = cubin.function("k", kernel=True)
    lost = cubin.external("lost")
    cubin.call(kernel, lost)
    cubin.relocate(cubin.find(".text.k"), [(16, R_CALL, lost, 0)], implicit=True)
    unit = Lines(files=[(path, 0)], directories=[])
    unit.function(kernel, [Row(0, 1)])
    unit.add_to(cubin)
    return cubin.build()


def said(cubin: bytes, **options: Any) -> str:
    log = io.StringIO()
    with pytest.raises(pylink.LinkError):
        pylink.link(
            [("a.cubin", cubin)], arch="sm_80", log=log, diagnostics_format="text", **options
        )
    return log.getvalue()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("path", ["../secrets/key", "link.cu", "out/key", "/proc/self/environ"])
def test_a_link_says_once_that_source_is_withheld(path: str) -> None:
    pytest.importorskip("elftools", reason="pyelftools is not installed")
    cubin = hostile(path)
    shown = said(cubin, wrap_diagnostics=False)
    assert shown.count(f"            source text is not shown: {OUTSIDE}\n") == 1
    assert SECRET not in shown
    assert "source text" not in said(cubin, no_source_context=True)


def test_the_folders_that_options_name(here: Path) -> None:
    pytest.importorskip("elftools", reason="pyelftools is not installed")
    cubin = hostile("../extra/e.cu")
    assert "  extra\n" not in said(cubin)
    assert "  extra\n" in said(cubin, source_root=("../nowhere", str(here / "extra")))
    assert "  extra\n" in said(cubin, source_root="..")
    assert "  extra\n" in said(cubin, library_path="../extra")


def test_remarks_show_no_more(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What is shown of a remark on the terminal goes the same way."""
    pytest.importorskip("elftools", reason="pyelftools is not installed")
    cubin = Cubin()
    cubin.function("k", kernel=True)
    unused = cubin.function("unused")
    unit = Lines(files=[("../secrets/key", 0)], directories=[])
    unit.function(unused, [Row(0, 1)])
    unit.add_to(cubin)
    Path("a.cubin").write_bytes(cubin.build())
    words = ["-arch=sm_80", "a.cubin", "-o", "made", "--pass-remarks=dce"]
    assert main([*words, "--diagnostics_format=text", "--no_wrap_diagnostics"]) == 0
    shown = capfd.readouterr().err
    assert "secrets/key(1)" in shown
    assert f"source text is not shown: {OUTSIDE}" in shown
    assert SECRET not in shown
