"""The drop-in lines: texts and padding recorded from nvlink 13.0.88, with pylink's name."""

from __future__ import annotations

import errno
import io
import subprocess
import sys

import pytest

from pylink.diagnostics import NvlinkRenderer, Policy, Sink, note
from pylink.diagnostics.errors import LinkError


def sink_to(
    stream: io.StringIO, policy: Policy | None = None, *, tool: str = "pylink", target: str = ""
) -> Sink:
    return Sink(NvlinkRenderer(stream, tool=tool, target=target), policy=policy)


def test_each_severity_has_nvlinks_word() -> None:
    stream = io.StringIO()
    sink = sink_to(stream)
    sink.report("verbose-memory", sizes="8 bytes gmem, 4 bytes cmem[3]")
    sink.report("stack-size", symbol="_Z1kPi")
    sink.report("undefined-reference", symbol="_Z1fi", file="a.cubin")
    with pytest.raises(LinkError):
        sink.fatal("merge-failed")
    assert stream.getvalue() == (
        "pylink info    : 8 bytes gmem, 4 bytes cmem[3]\n"
        "pylink warning : Stack size for entry function '_Z1kPi' cannot be statically determined\n"
        "pylink error   : Undefined reference to '_Z1fi' in 'a.cubin'\n"
        "pylink fatal   : merge_elf failed\n"
    )


@pytest.mark.parametrize(
    ("kind", "place", "text"),
    [
        ("unknown-option", {"option": "bogus"}, "fatal   : Unknown option 'bogus'"),
        ("unknown-arch", {"arch": "(null)"}, "fatal   : Unknown arch name '(null)'"),
        (
            "undefined-value",
            {"value": "32", "option": "machine"},
            "fatal   : Value '32' is not defined for option 'machine'",
        ),
        ("no-output-file", {}, "fatal   : Must specify output file with -o option"),
        (
            "conflicting-options",
            {"option": "-suppress-debug-info", "other": "no -g"},
            "fatal   : Conflicting options '-suppress-debug-info' and 'no -g'",
        ),
        (
            "option-redefined",
            {"option": "arch"},
            "warning : incompatible redefinition for option 'arch', "
            "the last value of this option was used",
        ),
        (
            "host-info-ignored",
            {},
            "info    : ignore -use-host-info because -kernels-used or -variables-used is specified",
        ),
        ("cannot-open-input", {"file": "x"}, "fatal   : Could not open input file 'x'"),
        ("cannot-open-output", {"file": "x"}, "fatal   : Could not open output file 'x'"),
        ("cannot-open-file", {"file": "x"}, "fatal   : Cannot open file 'x'"),
        (
            "arch-mismatch",
            {"file": "a.cubin", "arch": "sm_80"},
            "fatal   : Input file 'a.cubin' arch does not match target 'sm_80'",
        ),
        (
            "output-limited",
            {"file": "a.cubin", "arch": "100"},
            "warning : Output is limited to run on SM Arch '100' only "
            "due to limitations in input file a.cubin",
        ),
        (
            "arch-not-found",
            {"file": "b80.fatbin", "arch": "sm_75"},
            "warning : SM Arch ('sm_75') not found in 'b80.fatbin'",
        ),
        (
            "library-skipped",
            {"file": "./libcub.a", "library": "cub"},
            "warning : Skipping incompatible './libcub.a' when searching for -lcub",
        ),
        (
            "multiple-definition",
            {"symbol": "_Z1fi", "file": "c.cubin", "first": "b.cubin"},
            "error   : Multiple definition of '_Z1fi' in 'c.cubin', first defined in 'b.cubin'",
        ),
        (
            "size-mismatch",
            {"symbol": "g", "file": "d.cubin", "first": "c.cubin"},
            "error   : Size doesn't match for 'g' in 'd.cubin', first specified in 'c.cubin'",
        ),
        (
            "too-much-memory",
            {"symbol": "_Z1kPi", "space": "shared", "size": 0x11940, "limit": 0xC000},
            "error   : Entry function '_Z1kPi' uses too much shared data "
            "(0x11940 bytes, 0xc000 max)",
        ),
        (
            "too-much-file-memory",
            {"space": "constant", "size": 0x11940, "limit": 0x10000},
            "error   : File uses too much global constant data (0x11940 bytes, 0x10000 max)",
        ),
        (
            "verbose-usage",
            {
                "registers": 24,
                "barriers": 0,
                "stack": 0,
                "memory": "0 bytes smem, 360 bytes cmem[0]",
                "lmem": 0,
            },
            "info    : used 24 registers, used 0 barriers, 0 stack, 0 bytes smem, "
            "360 bytes cmem[0], 0 bytes lmem",
        ),
    ],
)
def test_texts_are_nvlinks(kind: str, place: dict[str, str], text: str) -> None:
    stream = io.StringIO()
    sink = sink_to(stream)
    if "fatal" in text:
        with pytest.raises(LinkError):
            sink.report(kind, **place)  # type: ignore[arg-type] # the place and its arguments
    else:
        sink.report(kind, **place)  # type: ignore[arg-type] # the place and its arguments
    assert stream.getvalue() == f"pylink {text}\n"


def test_promotion_changes_the_word_alone() -> None:
    stream = io.StringIO()
    sink = sink_to(stream, Policy(warnings_as_errors=True))
    sink.report("stack-size", symbol="k")
    assert stream.getvalue() == (
        "pylink error   : Stack size for entry function 'k' cannot be statically determined\n"
    )
    assert sink.exit_code() == 255


def test_report_arch_and_tool_name() -> None:
    stream = io.StringIO()
    sink = sink_to(stream, tool="nvlink", target="sm_75")
    sink.report("undefined-reference", symbol="f", file="a.cubin")
    assert stream.getvalue() == (
        "nvlink error   : Undefined reference to 'f' in 'a.cubin' (target: sm_75)\n"
    )


def test_notes_and_the_hint_do_not_show() -> None:
    stream = io.StringIO()
    sink = sink_to(stream, Policy(numbers=True))
    sink.report("stack-size", symbol="k", notes=[note("recursion-here", symbol="f")])
    assert stream.getvalue().count("\n") == 1


def test_control_characters_stay_on_the_line() -> None:
    stream = io.StringIO()
    sink = sink_to(stream)
    sink.report("undefined-reference", symbol="f\x1b[31m", file="a\n\x9b.cubin")
    assert stream.getvalue() == (
        "pylink error   : Undefined reference to 'f\\x1b[31m' in 'a\\n\\x9b.cubin'\n"
    )


def test_bytes_that_are_no_utf8_are_shown_by_number() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", errors="strict")
    Sink(NvlinkRenderer(stream)).report(
        "undefined-reference", symbol=b"f\xff".decode("utf-8", "surrogateescape"), file="ä"
    )
    assert raw.getvalue() == b"pylink error   : Undefined reference to 'f\\xff' in '\xc3\xa4'\n"


class FullStream(io.StringIO):
    """A text stream on a full disk."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_stream_that_fails_costs_only_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr("sys.stderr", None)
    for stream in (closed, FullStream(), None):
        sink = Sink(NvlinkRenderer(stream))
        sink.report("stack-size", symbol="k")
        assert len(sink.diagnostics) == 1


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_a_process_without_stderr_keeps_its_status(
    redirection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # it hides what is flushed at exit
    script = (
        "from pylink.diagnostics import NvlinkRenderer, Sink\n"
        "sink = Sink(NvlinkRenderer())\n"
        "sink.report('undefined-reference', symbol='f', file='\u00e4.cubin')\n"
        "raise SystemExit(sink.exit_code())\n"
    )
    command = f'exec "$0" -c "$1" {redirection}'
    run = subprocess.run(["sh", "-c", command, sys.executable, script], check=False)
    assert run.returncode == 255
