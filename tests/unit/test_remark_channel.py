"""What becomes of a remark: who sees it, in which words, and what an error of the file does."""

from __future__ import annotations

import io
import json
import re

import pytest
from helpers.remarked import Listed

from pylink.diagnostics import Sink
from pylink.remarks import (
    ANALYSIS,
    ANALYSIS_ALIASING,
    ANALYSIS_FP_COMMUTE,
    FAILURE,
    MISSED,
    PASSED,
    Remark,
    Remarks,
)
from pylink.remarks.channel import BATCH
from pylink.remarks.record import TAGS
from pylink.renderers.configuration import configure_sink

KINDS = (PASSED, MISSED, ANALYSIS, ANALYSIS_FP_COMMUTE, ANALYSIS_ALIASING, FAILURE)


def remark(kind: int = PASSED, pass_name: str = "inline", hotness: int | None = None) -> Remark:
    return Remark(kind, pass_name, "Name", "f", hotness=hotness).text("did ").arg("What", 1)


def shown(channel: Remarks, sink: Sink, *remarks: Remark) -> list[str]:
    before = len(sink.diagnostics)
    for remark in remarks:
        channel.emit(remark)
    return [diagnostic.kind for diagnostic in sink.diagnostics[before:]]


@pytest.mark.parametrize(
    ("patterns", "kinds"),
    [
        ({"passed": "inline"}, {PASSED, FAILURE}),
        ({"missed": "inline"}, {MISSED, FAILURE}),
        (
            {"analysis": "inline"},
            {ANALYSIS, ANALYSIS_FP_COMMUTE, ANALYSIS_ALIASING, FAILURE},
        ),
        ({"passed": "lin"}, {PASSED, FAILURE}),  # anywhere in the name
        ({"passed": "^lin"}, set()),
        ({"passed": "gvn|inline"}, {PASSED, FAILURE}),
        ({"passed": "gvn"}, set()),
        ({}, set()),
    ],
)
def test_each_kind_has_a_pattern_of_its_own(patterns: dict[str, str], kinds: set[int]) -> None:
    sink = Sink()
    compiled = {name: re.compile(text) for name, text in patterns.items()}
    channel = Remarks(
        sink,
        passed=compiled.get("passed"),
        missed=compiled.get("missed"),
        analysis=compiled.get("analysis"),
    )
    for kind in KINDS:
        assert bool(shown(channel, sink, remark(kind))) == (kind in kinds), TAGS[kind]
        assert channel.wants("inline", kind) == (kind in kinds)
    assert channel.wants("inline") == bool(kinds)


def test_the_filter_is_for_the_file_alone() -> None:
    sink, file = Sink(), Listed()
    channel = Remarks(sink, file, passed=re.compile("gvn"), written=re.compile("inline"))
    assert shown(channel, sink, remark(), remark(pass_name="gvn")) == ["pass-remark"]
    channel.close()
    assert [remark.pass_name for remark in file.remarks] == ["inline"]
    assert channel.wants("gvn")
    assert not channel.wants("gvn", MISSED)
    assert channel.wants("inline", MISSED)
    assert not channel.wants("dce")


def test_without_a_filter_the_file_gets_all_in_order() -> None:
    file = Listed()
    channel = Remarks(Sink(), file)
    made = [remark(KINDS[i % 6], f"pass-{i}") for i in range(3 * BATCH + 1)]
    for each in made:
        channel.emit(each)
    channel.close()
    assert file.remarks == made


@pytest.mark.parametrize(
    ("hotness", "threshold", "left"),
    [
        (False, 0, [None, None, None]),
        (True, 0, [None, 4, 5]),
        (True, 5, [5]),
        (False, 5, [5]),  # a threshold asks for hotness
        (True, 6, []),
    ],
)
def test_hotness_is_left_out_written_or_a_threshold(
    hotness: bool, threshold: int, left: list[int | None]
) -> None:
    sink, file = Sink(), Listed()
    every = re.compile("")
    channel = Remarks(sink, file, passed=every, hotness=hotness, threshold=threshold)
    kinds = shown(channel, sink, *(remark(hotness=value) for value in (None, 4, 5)))
    channel.close()
    assert [remark.hotness for remark in file.remarks] == left
    assert len(kinds) == len(left)


def lines(format: str, *remarks: Remark, hotness: bool = False, **values: object) -> str:
    stream = io.StringIO()
    sink = Sink()
    configure_sink(sink, {"diagnostics_format": format, **values}, stream=stream)
    every = re.compile("")
    channel = Remarks(sink, passed=every, missed=every, analysis=every, hotness=hotness)
    for remark in remarks:
        channel.emit(remark)
    channel.close()
    sink.close()
    return stream.getvalue()


SPLIT = (
    Remark(PASSED, "coro-split", "CoroSplit", "f", file="a.cu", line=3, column=7, hotness=64)
    .text("Split '")
    .arg("function", "f")
    .text("' (frame_size=")
    .arg("frame_size", 24)
    .text(", align=")
    .arg("align", 8)
    .text(")")
)


def copy(remark: Remark) -> Remark:
    return Remark(
        remark.kind,
        remark.pass_name,
        remark.name,
        remark.function,
        file=remark.file,
        line=remark.line,
        column=remark.column,
        hotness=remark.hotness,
        args=remark.args,
    )


def test_the_message_is_the_values_joined() -> None:
    assert SPLIT.message == "Split 'f' (frame_size=24, align=8)"


def test_the_default_format_has_the_line_of_llvm() -> None:
    cubin = Remark(MISSED, "dce", "Kept", "g", file="a.cubin").text("kept g")
    assert lines("nvlink", copy(SPLIT), cubin, remark()) == (
        "remark: a.cu:3:7: Split 'f' (frame_size=24, align=8)\n"
        "remark: a.cubin:0:0: kept g\n"
        "remark: <unknown>:0:0: did 1\n"
    )
    assert lines("nvlink", copy(SPLIT), hotness=True) == (
        "remark: a.cu:3:7: Split 'f' (frame_size=24, align=8) (hotness: 64)\n"
    )


def test_text_names_the_pass_as_the_option_does() -> None:
    cubin = Remark(MISSED, "dce", "Kept", "g", file="a.cubin").text("kept g")
    analysis = Remark(ANALYSIS_ALIASING, "layout", "Over", "g").text("over g")
    failure = Remark(FAILURE, "layout", "Broke", "g").text("broke g")
    assert lines("text", copy(SPLIT), cubin, analysis, failure) == (
        "a.cu(3): remark: Split 'f' (frame_size=24, align=8) [-pass-remarks=coro-split]\n\n"
        "a.cubin: remark: kept g [-pass-remarks-missed=dce]\n\n"
        "Remark: over g [-pass-remarks-analysis=layout]\n\n"
        "Remark: broke g [-pass-remarks=layout]\n\n"
    )


def test_text_is_colored_like_any_diagnostic() -> None:
    text = lines("text", copy(SPLIT), color="always")
    assert "\x1b[01;36mremark\x1b[0m: Split" in text


def test_sarif_has_rule_level_and_place() -> None:
    (result,) = json.loads("[" + lines("sarif", copy(SPLIT)) + "]")
    assert result["ruleId"] == "EC710"
    assert result["level"] == "remark"
    assert result["message"]["text"].startswith("Split 'f' (frame_size=24, align=8)")
    place = result["locations"][0]["physicalLocation"]
    assert place["region"] == {"startLine": 3, "startColumn": 7}
    assert place["artifactLocation"]["uri"].endswith("/a.cu")


def test_no_format_lets_a_name_break_the_line() -> None:
    bad = Remark(PASSED, "p", "n", "x", file="a\nb.cu", line=1).arg("Name", "x\n\x1b[2Jy\udcff")
    assert lines("nvlink", copy(bad)) == "remark: a\\nb.cu:1:0: x\\n\\x1b[2Jy\\xff\n"
    assert lines("text", copy(bad)).count("\n") == 2
    assert "\x1b" not in lines("text", copy(bad))
    (result,) = json.loads("[" + lines("sarif", copy(bad)) + "]")
    assert result["message"]["text"] == "x\n\x1b[2Jy\\xff [-pass-remarks=p]"


def test_infos_that_were_asked_for_stay_with_disable_infos_and_can_be_suppressed() -> None:
    assert lines("nvlink", remark(), disable_infos=True, disable_warnings=True)
    assert lines("nvlink", remark(), diag_suppress=("pass-remark",)) == ""
    assert "error" in lines("text", remark(MISSED), diag_error=("711",))


def test_remarks_end_no_link_that_treats_warnings_as_errors() -> None:
    sink = Sink()
    configure_sink(sink, {"warning_as_error": True}, stream=io.StringIO())
    channel = Remarks(sink, passed=re.compile(""))
    for kind in KINDS:
        channel.emit(remark(kind))
    assert sink.errors == 0


class Full(Listed):
    """A file on a disk that is full."""

    def close(self) -> None:
        raise OSError(28, "No space left on device")


def test_a_full_disk_is_one_error_that_lets_the_link_end() -> None:
    sink = Sink()
    file = Full()
    file.path = "out.yaml"
    channel = Remarks(sink, file)
    channel.emit(remark())
    channel.close()
    (diagnostic,) = sink.diagnostics
    assert diagnostic.message == "Writing remarks to 'out.yaml' failed: No space left on device"
    assert sink.exit_code() == 255


def test_an_empty_file_is_said_to_be_empty() -> None:
    sink, file = Sink(), Listed()
    file.path = "out.yaml"
    Remarks(sink, file).close()
    (diagnostic,) = sink.diagnostics
    assert diagnostic.message == "No remarks to write; 'out.yaml' is empty"
    assert sink.exit_code() == 0


@pytest.mark.parametrize("field", [0, 1, 2])
def test_a_remark_needs_pass_name_and_function(field: int) -> None:
    names = ["p", "n", "f"]
    names[field] = ""
    with pytest.raises(ValueError, match="a remark needs a pass, a name and a function"):
        Remark(PASSED, *names)


def test_an_argument_needs_a_key_and_a_kind_exists() -> None:
    with pytest.raises(ValueError, match="an argument needs a key"):
        remark().arg("", 1)
    with pytest.raises(ValueError, match="there is no kind 7 of remarks"):
        remark(7)


def test_values_have_text_form() -> None:
    made = remark().arg("A", True).arg("B", 2.5).arg("C", -7).arg("D", "x", file="a", line=2)
    assert made.args[2:] == [
        ("A", "true", None, 0, 0),
        ("B", "2.5", None, 0, 0),
        ("C", "-7", None, 0, 0),
        ("D", "x", "a", 2, 0),
    ]
