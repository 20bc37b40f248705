"""The log: a physical line for each record."""

from __future__ import annotations

from pathlib import Path

import pytest

from pylink.diagnostics import Diagnostic, Policy, Sink, note
from pylink.diagnostics.errors import LinkError
from pylink.diagnostics.record import CHILD, CONTINUATION, Source
from pylink.files.atomic import WholeFile
from pylink.renderers.configuration import add_log
from pylink.renderers.log import LogRenderer


def test_letters_places_and_children(tmp_path: Path) -> None:
    path = tmp_path / "log"
    sink = Sink()
    add_log(sink, str(path))
    sink.report("host-info-ignored")
    sink.report("stack-size", symbol="k", source=Source("k.cu", 7, 3))
    sink.report(
        "multiple-definition",
        symbol="f",
        file="b.cubin",
        first="a.cubin",
        source=Source("b.cu", 2, 5),
        children=[
            Diagnostic("malformed", {"reason": "of the child"}, type=CHILD),
            Diagnostic("malformed", {"reason": "not written"}, type=CONTINUATION),
        ],
        notes=[note("first-defined-here", symbol="f", file="a.cubin", source=Source("a.cu", 9))],
    )
    with pytest.raises(LinkError):
        sink.fatal("merge-failed")
    sink.close()
    assert path.read_text() == (
        'R "" 0 0 ignore -use-host-info because -kernels-used or -variables-used is specified\n'
        "W \"k.cu\" 7 3 Stack size for entry function 'k' cannot be statically determined\n"
        "E \"b.cu\" 2 5 Multiple definition of 'f' in 'b.cubin', first defined in 'a.cubin'\n"
        'e "b.cu" 2 5 : of the child\n'
        "e \"a.cu\" 9 0 a.cubin: 'f' is first defined here\n"
        'C "" 0 0 merge_elf failed\n'
    )


def test_a_promoted_warning_is_an_error(tmp_path: Path) -> None:
    sink = Sink(policy=Policy(warnings_as_errors=True))
    add_log(sink, str(tmp_path / "log"))
    sink.report("stack-size", symbol="k", file="a.cubin")
    sink.close()
    assert (tmp_path / "log").read_text().startswith('E "a.cubin" 0 0 Stack size')


def test_an_internal_error_says_so(tmp_path: Path) -> None:
    sink = Sink()
    add_log(sink, str(tmp_path / "log"))
    with pytest.raises(LinkError):
        sink.fatal("internal-error", reason="no root")
    sink.close()
    assert (tmp_path / "log").read_text() == 'I "" 0 0 (internal error) no root\n'


def test_names_cannot_break_the_line(tmp_path: Path) -> None:
    sink = Sink()
    add_log(sink, str(tmp_path / "log"))
    sink.report("undefined-reference", symbol="f\n\r\x00\udcff", file='a"\\b\n.cubin')
    sink.close()
    assert (tmp_path / "log").read_bytes() == (
        b'E "a\\"\\\\b\\n.cubin" 0 0 '
        b"Undefined reference to 'f\\n\\r\\x00\\xff' in 'a\"\\b\\n.cubin'\n"
    )


def test_a_log_that_cannot_be_opened_is_fatal(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "no" / "log", ""):
        sink = Sink()
        with pytest.raises(LinkError) as caught:
            add_log(sink, str(path))
        assert str(caught.value).startswith(f"Could not open output file '{path}'\n")


def test_a_log_on_a_full_disk_is_an_error_at_the_end() -> None:
    sink = Sink(LogRenderer(WholeFile("/dev/full")))
    sink.report("undefined-reference", symbol="f", file="a.cubin")
    sink.report("undefined-reference", symbol="g", file="a.cubin")
    sink.close()
    assert [d.message for d in sink.diagnostics[2:]] == [
        "Writing '/dev/full' failed: No space left on device"
    ]
    assert sink.exit_code() == 1
