"""What the sink does with a report: filter, count, promote, limit, stop."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest

from pylink.diagnostics import (
    CATASTROPHE,
    DISCRETIONARY,
    REMARK,
    WARNING,
    Diagnostic,
    NvlinkRenderer,
    Policy,
    Renderer,
    Sink,
    note,
)
from pylink.diagnostics.errors import LinkError
from pylink.diagnostics.policy import SUPPRESSED
from pylink.diagnostics.record import Source
from pylink.renderers.configuration import find_kind, set_severity


class Recorder(Renderer):
    """Remembers the kinds it was given, and whether it was closed."""

    def __init__(self) -> None:
        self.kinds: list[str] = []
        self.closed = 0

    def emit(self, diagnostic: Diagnostic) -> None:
        self.kinds.append(diagnostic.kind)

    def close(self, sink: Sink) -> None:
        self.closed += 1


def make(**policy: int) -> tuple[Sink, Recorder]:
    recorder = Recorder()
    return Sink(recorder, policy=Policy(**policy)), recorder  # type: ignore[arg-type] # bools, too


def test_a_report_is_kept_counted_and_rendered() -> None:
    sink, recorder = make()
    first = sink.report("undefined-reference", symbol="f", file="a.cubin", section=".text.k")
    sink.report("stack-size", symbol="k")
    assert first is not None
    assert first.message == "Undefined reference to 'f' in 'a.cubin'"
    assert (first.file, first.section, first.symbol) == ("a.cubin", ".text.k", "f")
    assert [d.kind for d in sink.diagnostics] == ["undefined-reference", "stack-size"]
    assert recorder.kinds == ["undefined-reference", "stack-size"]
    assert (sink.errors, sink.warnings, sink.catastrophes) == (1, 1, 0)
    assert sink.exit_code() == 255


def test_exit_codes_are_nvlinks() -> None:
    assert make()[0].exit_code() == 0
    sink, _ = make()
    sink.report("stack-size", symbol="k")
    assert sink.exit_code() == 0
    sink.report("undefined-reference", symbol="f", file="a.cubin")
    with pytest.raises(LinkError):
        sink.stop()
    assert sink.exit_code() == 255
    with pytest.raises(LinkError):
        sink.fatal("merge-failed")
    assert sink.exit_code() == 1


def test_a_fatal_is_rendered_then_raises_with_all_records() -> None:
    sink, recorder = make()
    sink.report("multiple-definition", symbol="f", file="b.cubin", first="a.cubin")
    with pytest.raises(LinkError) as caught:
        sink.report("merge-failed")
    assert recorder.kinds == ["multiple-definition", "merge-failed"]
    assert [d.kind for d in caught.value.diagnostics] == recorder.kinds
    assert str(caught.value) == (
        "Multiple definition of 'f' in 'b.cubin', first defined in 'a.cubin'\nmerge_elf failed"
    )


def test_fatal_refuses_a_kind_that_is_not_fatal() -> None:
    sink, _ = make()
    with pytest.raises(ValueError, match="stack-size is not a fatal diagnostic"):
        sink.fatal("stack-size", symbol="k")


def test_malformed_input_names_file_section_and_row() -> None:
    sink, _ = make()
    record = sink.report(
        "relocation-symbol", file="a.cubin", section=".rela.text.k", index=3, value=99
    )
    assert record is not None
    assert record.message == (
        "a.cubin: .rela.text.k[3]: relocation refers to symbol 99, which does not exist"
    )
    record = sink.report("section-range", file="a.cubin", section=".text.k", offset=0x40)
    assert record is not None
    assert record.message == "a.cubin: .text.k+0x40: section contents lie outside the file"


def test_records_below_know_their_parent() -> None:
    sink, _ = make()
    below = note("first-defined-here", symbol="f", file="a.cubin")
    record = sink.report(
        "multiple-definition", symbol="f", file="b.cubin", first="a.cubin", notes=[below]
    )
    assert record is not None
    assert record.notes == [below]
    assert below.parent is record
    assert sink.diagnostics == [record]


@pytest.mark.parametrize(
    ("policy", "severity"),
    [
        ({}, WARNING),
        ({"no_warnings": 1}, None),
        ({"warnings_as_errors": 1}, DISCRETIONARY),
        # nvlink -w -Werror reports the warning as an error
        ({"warnings_as_errors": 1, "no_warnings": 1}, DISCRETIONARY),
        ({"threshold": REMARK}, WARNING),
        ({"threshold": DISCRETIONARY}, None),
    ],
)
def test_what_becomes_of_a_warning(policy: dict[str, int], severity: int | None) -> None:
    sink, recorder = make(**policy)
    record = sink.report("report-incomplete", file="k")
    if severity is None:
        assert record is None
        assert (sink.warnings, sink.errors, recorder.kinds) == (0, 0, [])
    else:
        assert record is not None
        assert (record.severity, record.original) == (severity, WARNING)
        assert (sink.warnings, sink.errors) == ((1, 0) if severity == WARNING else (0, 1))


def test_no_threshold_hides_an_error() -> None:
    sink, _ = make(threshold=CATASTROPHE)
    assert sink.report("undefined-reference", symbol="f", file="a.cubin") is not None
    assert sink.errors == 1


def test_verbose_lines_pass_where_other_infos_do_not() -> None:
    sink, recorder = make(no_infos=1)
    sink.report("suppression-hint")
    sink.report("host-info-ignored")
    sink.report("verbose-memory", sizes="0 bytes gmem")
    assert recorder.kinds == ["host-info-ignored", "verbose-memory"]


@pytest.mark.parametrize("value", ["501", "501-D", "EC501", "stack-size"])
def test_a_kind_is_found_by_number_or_name(value: str) -> None:
    assert find_kind(value) == "stack-size"


@pytest.mark.parametrize("value", ["", "0", "502x", "-1", "stack", "٣", "9" * 5000])
def test_what_is_no_number_or_name(value: str) -> None:
    assert find_kind(value) is None


@pytest.mark.parametrize(
    ("action", "severity"),
    [("suppress", None), ("remark", REMARK), ("warning", WARNING), ("error", DISCRETIONARY)],
)
def test_control_sets_the_severity(action: str, severity: int | None) -> None:
    sink, _ = make()
    set_severity(sink, action, "203,501")
    for kind, place in (("stack-size", {"symbol": "k"}), ("arch-not-found", {"file": "a"})):
        record = sink.report(kind, arch="sm_75", **place)  # type: ignore[arg-type] # place is str
        assert (record.severity if record else None) == severity


def test_a_hard_error_keeps_its_severity() -> None:
    sink, _ = make()
    set_severity(sink, "suppress", "undefined-reference")
    set_severity(sink, "warning", "401")
    sink.report("undefined-reference", symbol="f", file="a.cubin")
    assert (sink.errors, sink.warnings) == (1, 0)


def test_default_restores_the_table() -> None:
    policy = Policy()
    policy.assign("stack-size", REMARK)
    assert policy.severity("stack-size") == REMARK
    policy.assign("stack-size", SUPPRESSED)
    assert policy.severity("stack-size") == SUPPRESSED
    policy.restore("stack-size")
    assert policy.severity("stack-size") == WARNING


def test_an_unknown_number_is_a_fatal_diagnostic() -> None:
    sink, _ = make()
    with pytest.raises(LinkError) as caught:
        set_severity(sink, "suppress", "501,99999")
    assert str(caught.value) == "invalid error number in diagnostic control option: 99999"
    assert sink.exit_code() == 1


def test_once_shows_one_and_counts_all() -> None:
    sink, recorder = make()
    set_severity(sink, "once", "stack-size")
    records = [sink.report("stack-size", symbol=symbol) for symbol in ("a", "b", "c")]
    assert [record is not None for record in records] == [True, False, False]
    sink.report("undefined-reference", symbol="f", file="a.cubin")
    sink.report("undefined-reference", symbol="f", file="b.cubin")
    assert recorder.kinds == ["stack-size", "undefined-reference", "undefined-reference"]
    assert (sink.warnings, sink.errors) == (3, 2)


def test_a_suppressed_note_leaves_its_record() -> None:
    sink, _ = make()
    set_severity(sink, "suppress", "first-defined-here")
    record = sink.report(
        "multiple-definition",
        symbol="f",
        file="b.cubin",
        first="a.cubin",
        notes=[note("first-defined-here", symbol="f", file="a.cubin")],
    )
    assert record is not None
    assert record.notes == []


def test_the_error_limit_ends_the_link_with_its_own_record() -> None:
    sink, recorder = make(error_limit=2)
    for symbol in ("a", "b", "c"):
        sink.report("stack-size", symbol=symbol)  # warnings do not count
    sink.report("undefined-reference", symbol="f", file="a.cubin")
    with pytest.raises(LinkError):
        sink.report("undefined-reference", symbol="g", file="a.cubin")
    assert recorder.kinds[-2:] == ["undefined-reference", "error-limit"]
    assert sink.diagnostics[-1].message == "Error limit reached."
    assert (sink.errors, sink.catastrophes) == (2, 0)
    assert sink.exit_code() == 1


def test_a_suppressed_kind_goes_wherever_it_hangs() -> None:
    sink, _ = make()
    set_severity(sink, "suppress", "first-defined-here, 501")
    set_severity(sink, "remark", "referenced-here")
    below = note("referenced-here", symbol="f", file="b.cubin")
    below.notes = [note("first-defined-here", symbol="f"), note("referenced-here", symbol="g")]
    record = sink.report("undefined-reference", symbol="f", file="a.cubin", notes=[below])
    assert record is not None
    assert [(note.kind, note.symbol) for note in record.notes] == [("referenced-here", "f")]
    assert [(note.kind, note.symbol) for note in below.notes] == [("referenced-here", "g")]
    assert sink.report("stack-size", symbol="k") is None


def test_the_hint_follows_the_first_warning_once_where_numbers_are_shown() -> None:
    sink, recorder = make(numbers=1)
    sink.report("undefined-reference", symbol="f", file="a.cubin")
    sink.report("stack-size", symbol="a")
    sink.report("stack-size", symbol="b")
    assert recorder.kinds == [
        "undefined-reference",
        "stack-size",
        "suppression-hint",
        "stack-size",
    ]
    assert (sink.warnings, sink.errors) == (2, 1)


def test_the_hint_comes_with_a_promoted_warning_but_not_with_an_assigned_error() -> None:
    sink, recorder = make(numbers=1, warnings_as_errors=1)
    sink.report("stack-size", symbol="a")
    assert "suppression-hint" in recorder.kinds
    sink, recorder = make(numbers=1)
    set_severity(sink, "error", "501")
    sink.report("stack-size", symbol="a")
    assert recorder.kinds == ["stack-size"]


def test_every_renderer_gets_every_record_and_is_closed() -> None:
    first, second = Recorder(), Recorder()
    sink = Sink(first, second)
    sink.report("stack-size", symbol="k")
    sink.close()
    assert first.kinds == second.kinds == ["stack-size"]
    assert (first.closed, second.closed) == (1, 1)


def test_a_sink_without_renderers_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    sink = Sink()
    sink.report("stack-size", symbol="k")
    with pytest.raises(LinkError):
        sink.fatal("cannot-open-input", file="a.cubin")
    sink.close()
    assert capfd.readouterr() == ("", "")


def test_a_link_with_nothing_to_say_loads_little() -> None:
    script = (
        "import sys; before = set(sys.modules)\n"
        "from pylink.diagnostics import Sink\n"
        "from pylink.renderers.configuration import configure_sink\n"
        "sink = Sink()\n"
        "configure_sink(sink, {'arch': 'sm_90a', 'output_file': 'o.cubin'})\n"
        "sink.close()\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    loaded = {name for name in run.stdout.split() if name.startswith("pylink.")}
    names = ("errors", "nvlink", "policy", "severity", "sink", "stream")
    assert {name for name in loaded if name.startswith("pylink.diagnostics.")} == {
        f"pylink.diagnostics.{name}" for name in names
    }
    assert {name for name in loaded if name.startswith("pylink.renderers.")} == {
        "pylink.renderers.configuration"
    }
    heavy = "dataclasses typing enum re argparse pathlib functools collections contextlib json"
    assert not set(heavy.split()) & set(run.stdout.split())


def test_an_explanation_is_asked_for_once_and_only_by_who_looks() -> None:
    asked = []

    def explain(diagnostic: Diagnostic) -> None:
        asked.append(diagnostic.kind)
        diagnostic.section = ".text.k"
        diagnostic.notes = [note("referenced-here", symbol="f"), note("more-references")]

    stream = io.StringIO()
    sink = Sink(NvlinkRenderer(stream))
    set_severity(sink, "suppress", "more-references")
    record = sink.report("undefined-reference", explain=explain, symbol="f", file="a.cubin")
    assert record is not None
    assert stream.getvalue() == "pylink error   : Undefined reference to 'f' in 'a.cubin'\n"
    assert asked == []
    assert record.where == "a.cubin: .text.k"
    assert [note.kind for note in record.notes] == ["referenced-here"]
    assert record.notes[0].parent is record
    assert (record.offset, record.source, record.context) == (None, None, [])
    assert asked == ["undefined-reference"]
    with pytest.raises(AttributeError):
        _ = record.nonsense  # type: ignore[attr-defined] # it is not there


def test_what_a_report_says_is_not_explained_away() -> None:
    def explain(diagnostic: Diagnostic) -> None:
        diagnostic.source = Source("k.cu", 1)

    sink = Sink()
    record = sink.report("malformed", explain=explain, file="a", section="s", index=3, reason="r")
    assert record is not None
    assert record.message == "a: s[3]: r"
    assert record.source is not None
    assert record.where == "a: s[3]"
