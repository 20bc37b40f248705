"""What option values make of a sink."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from pylink.diagnostics import Sink
from pylink.diagnostics.errors import LinkError
from pylink.renderers.configuration import configure_sink, open_reports


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO | None = None, /, **values: object) -> str:
    stream = stream or io.StringIO()
    sink = Sink()
    configure_sink(sink, values, stream=stream)
    open_reports(sink, values)
    sink.report("stack-size", symbol="k", file="a.cubin")
    sink.report("arch-not-found", arch="sm_75", file="b.fatbin")
    sink.report("host-info-ignored")
    sink.close()
    return stream.getvalue()


STACK = "Stack size for entry function 'k' cannot be statically determined"
ARCH = "SM Arch ('sm_75') not found in 'b.fatbin'"
INFO = "ignore -use-host-info because -kernels-used or -variables-used is specified"


@pytest.mark.parametrize(
    ("values", "lines"),
    [
        ({}, [f"warning : {STACK}", f"warning : {ARCH}", f"info    : {INFO}"]),
        (
            {"disable_warnings": True},
            [f"warning : {STACK}", f"warning : {ARCH}", f"info    : {INFO}"],
        ),
        (
            {"disable_warnings": True, "suppress_arch_warning": True},
            [f"warning : {STACK}", f"info    : {INFO}"],
        ),
        (
            {"warning_as_error": True},
            [f"error   : {STACK}", f"error   : {ARCH}", f"info    : {INFO}"],
        ),
        (
            {"disable_infos": True, "warning_as_error": True},
            [f"info    : {INFO}"],
        ),
        ({"suppress_stack_size_warning": True}, [f"warning : {ARCH}", f"info    : {INFO}"]),
        ({"suppress_arch_warning": True}, [f"warning : {STACK}", f"info    : {INFO}"]),
        (
            {"disable_infos": True, "diag_remark": ("203",)},
            [f"info    : {INFO}"],
        ),
        (
            {"report_arch": True, "arch": "sm_75", "disable_warnings": True},
            [
                f"warning : {STACK} (target: sm_75)",
                f"warning : {ARCH} (target: sm_75)",
                f"info    : {INFO} (target: sm_75)",
            ],
        ),
        ({"diag_suppress": ("501,203",)}, [f"info    : {INFO}"]),
        ({"diag_suppress": ("501", "203")}, [f"info    : {INFO}"]),
        (
            {"diag_error": "stack-size", "diag_remark": ("203",), "diag_warning": ("119",)},
            [f"error   : {STACK}", f"info    : {ARCH}", f"warning : {INFO}"],
        ),
        (
            {"warning_as_error": True, "suppress_stack_size_warning": True},
            [f"error   : {ARCH}", f"info    : {INFO}"],
        ),
    ],
)
def test_the_lines_that_options_leave(values: dict[str, object], lines: list[str]) -> None:
    assert shown(**values).splitlines() == [f"pylink {line}" for line in lines]


@pytest.mark.parametrize("form", ["nvlink", "text"])
def test_the_smallest_severity_that_is_shown(form: str) -> None:
    values: dict[str, object] = {"diagnostics_format": form}
    assert [line in shown(**values) for line in (STACK, ARCH, INFO)] == [True] * 3
    values["diag_min_severity"] = "remark"
    assert INFO in shown(**values)
    values["diag_min_severity"] = "warning"
    assert [line in shown(**values) for line in (STACK, ARCH, INFO)] == [True, True, False]
    values["diag_min_severity"] = "error"
    assert shown(**values) == ""
    assert STACK in shown(**values, diag_error="stack-size")


@pytest.mark.parametrize("option", ["diagnostics_format", "output_mode"])
def test_both_spellings_choose_the_format(option: str) -> None:
    assert shown(**{option: "nvlink"}).startswith("pylink warning : ")
    assert shown(**{option: "text"}).startswith("a.cubin: warning: Stack size")
    assert len(json.loads(f"[{shown(**{option: 'sarif'})}]")) == 3


def test_without_nvlinks_format_no_warning_is_left() -> None:
    assert "warning" not in shown(diagnostics_format="text", disable_warnings=True)
    stream = shown(diagnostics_format="sarif", disable_warnings=True)
    assert [each["level"] for each in json.loads(f"[{stream}]")] == ["remark"]


def test_numbers_and_colors_of_the_text() -> None:
    values = {"diagnostics_format": "text", "display_error_number": True}
    assert shown(**values).startswith("a.cubin: warning #501-D: Stack size")
    assert "Remark: The warnings can be suppressed" in shown(**values)
    assert "\x1b[01;35mwarning" in shown(**values, color="always")
    assert "\x1b" not in shown(**values, color="never")


def test_text_wraps_on_a_terminal_or_when_asked_to() -> None:
    values: dict[str, object] = {"diagnostics_format": "text", "display_error_number": True}
    whole = f"a.cubin: warning #501-D: {STACK}\n"
    wrapped = whole.replace("statically ", "statically\n          ")
    assert shown(**values).startswith(whole)
    assert shown(**values, wrap_diagnostics=True).startswith(wrapped)
    values["color"] = "never"
    assert shown(Terminal(), **values).startswith(wrapped)
    assert shown(Terminal(), **values, no_wrap_diagnostics=True).startswith(whole)


def test_the_error_limit() -> None:
    sink = Sink()
    configure_sink(sink, {"error_limit": 1}, stream=io.StringIO())
    with pytest.raises(LinkError, match="Error limit reached"):
        sink.report("undefined-reference", symbol="f", file="a.cubin")


def test_log_and_document_come_besides_the_format(tmp_path: Path) -> None:
    log, document = tmp_path / "l", tmp_path / "r.sarif"
    text = shown(diag_log=str(log), sarif_output=str(document), output_file="o.cubin")
    assert text.startswith("pylink warning : ")
    assert len(log.read_text().splitlines()) == 3
    results = json.loads(document.read_text())["runs"][0]["results"]
    assert [result["ruleId"] for result in results] == ["EC501", "EC203", "EC119"]


def test_a_mistake_is_fatal_in_the_chosen_format() -> None:
    stream = io.StringIO()
    with pytest.raises(LinkError):
        configure_sink(Sink(), {"diagnostics_format": "text", "diag_once": ("x",)}, stream=stream)
    assert stream.getvalue() == (
        "Command-line error: invalid error number in diagnostic control option: x\n\n"
    )


def test_a_format_must_be_one_of_three() -> None:
    with pytest.raises(ValueError, match="no diagnostics format 'yaml'"):
        configure_sink(Sink(), {"diagnostics_format": "yaml"})
