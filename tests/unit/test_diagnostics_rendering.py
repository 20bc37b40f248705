"""The options that say how text is laid out, from the command line to the printed line."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import termios
from pathlib import Path

import pytest

from pylink.diagnostics import Sink, note
from pylink.diagnostics.errors import LinkError
from pylink.diagnostics.record import Source
from pylink.options.parse import parse
from pylink.renderers.configuration import configure_sink

LONG = "\tf(" + "x, " * 60 + "y);"


def printed(folder: Path, *words: str, summary: bool = False) -> str:
    """A warning and an error in a source line that is longer than any terminal."""
    (folder / "k.cu").write_text(f"{LONG}\n")
    source = Source(str(folder / "k.cu"), 1, 2, 3)
    stream = io.StringIO()
    sink = Sink()
    line = parse(["--diagnostics_format=text", f"--source-root={folder}", *words], sink)
    configure_sink(sink, line.values, stream=stream)
    sink.report("stack-size", symbol="k" * 30, source=source)
    sink.report(
        "undefined-reference",
        symbol="f",
        file="a.cubin",
        notes=[note("referenced-here", symbol="f", file="b.cubin", source=source)],
    )
    if summary:
        sink.close()
    return stream.getvalue().replace(str(folder), "")


WARNING = (
    "/k.cu(1): warning: Stack size for entry function 'kkkkkkkkkkkkkkkkkkkkkkkkkkkkkk' cannot be "
    "statically determined\n"
)
ERROR = "a.cubin: error: Undefined reference to 'f' in 'a.cubin'\n"
NOTE = "/k.cu(1): note: b.cubin: 'f' is referenced here\n"
SHOWN = f"  {' ' * 8}{LONG[1:]}\n  {' ' * 8}^~\n"


def test_lines_stay_whole_in_a_file(tmp_path: Path) -> None:
    whole = f"{WARNING}{SHOWN}\n{ERROR}{NOTE}{SHOWN}\n"
    assert printed(tmp_path) == whole
    assert printed(tmp_path, "--no_wrap_diagnostics", "--terminal-width=20") == whole


def test_messages_wrap_and_source_lines_do_not(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    wrapped = printed(tmp_path / "w", "--wrap_diagnostics").splitlines()
    assert max(len(line) for line in wrapped if "f(" not in line) <= 79
    assert wrapped.count(SHOWN.splitlines()[0]) == 2
    assert any(line.startswith("          ") and "determined" in line for line in wrapped)


def test_the_width_leaves_a_column_free(tmp_path: Path) -> None:
    lines = printed(tmp_path, "--terminal-width=41", "--no-source-context").splitlines()
    assert "a.cubin: error: Undefined reference to" in lines
    assert "          'f' in 'a.cubin'" in lines
    assert max(map(len, lines[2:])) <= 40


def test_no_source_lines(tmp_path: Path) -> None:
    assert printed(tmp_path, "--no-source-context") == f"{WARNING}\n{ERROR}{NOTE}\n"


def test_brief_text_keeps_the_notes(tmp_path: Path) -> None:
    assert printed(tmp_path, "--brief-diagnostics=true") == f"{WARNING}{ERROR}{NOTE}"
    assert printed(tmp_path, "--brief-diagnostics", "false") == printed(tmp_path)


def test_the_narrowest_terminal_has_a_column(tmp_path: Path) -> None:
    lines = printed(tmp_path, "--terminal-width=1", "--no-source-context").splitlines()
    assert {len(line.strip()) for line in lines} <= {0, 1}


@pytest.mark.parametrize(("columns", "used"), [(60, 59), (0, 79)])
def test_the_width_of_a_terminal(tmp_path: Path, columns: int, used: int) -> None:
    """A terminal that does not know its own has that of most."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with open(terminal, "w", encoding="utf-8") as stream:
        sink = Sink()
        configure_sink(sink, {"diagnostics_format": "text", "color": "never"}, stream=stream)
        sink.report("undefined-reference", symbol="x" * 200, file="a.cubin")
        shown = os.read(controller, 4096).decode()
    os.close(controller)
    assert max(map(len, shown.splitlines())) == used


def test_the_summary_can_be_left_out(tmp_path: Path) -> None:
    whole = printed(tmp_path, summary=True)
    assert whole.endswith("detected in this link.\n")
    assert printed(tmp_path, "--diag-summary=true", summary=True) == whole
    assert "detected" not in printed(tmp_path, "--diag-summary=false", summary=True)


@pytest.mark.parametrize("width", [1, 3, 4])
def test_the_width_of_tabs(tmp_path: Path, width: int) -> None:
    shown = f"  {' ' * width}{LONG[1:]}\n  {' ' * width}^~\n"
    assert printed(tmp_path, f"--tab-width={width}") == f"{WARNING}{shown}\n{ERROR}{NOTE}{shown}\n"


@pytest.mark.parametrize("width", ["0", "-1"])
def test_a_tab_has_one_column_at_least(tmp_path: Path, width: str) -> None:
    assert f"\n   {LONG[1:]}\n   ^~\n" in printed(tmp_path, f"--tab-width={width}")


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("--wrap_diagnostics", "--wrap-diagnostics"),
        ("--no_source_context", "--no-source-context"),
        ("--brief_diagnostics=true", "--brief-diagnostics=true"),
        ("--display_error_number", "--display-error-number"),
        ("--diagnostics_format=text", "--diagnostics-format=text"),
        ("--error_limit=1", "--error-limit=1"),
        ("--diag_suppress=501", "--diag-suppress=501"),
    ],
)
def test_dashes_and_underscores_are_the_same(text: str, other: str) -> None:
    assert parse([text], Sink()).values == parse([other], Sink()).values != {}


def test_nvlinks_own_options_have_one_spelling() -> None:
    with pytest.raises(LinkError, match="Unknown option '-output_file'"):
        parse(["--output_file=x"], Sink())
