"""A small report of a link for tests of the output of `pylink report`."""

from __future__ import annotations

from pathlib import Path

import pytest

from pylink.command.cli import main
from pylink.report.file import write_report
from pylink.report.model import (
    Action,
    BarChart,
    Body,
    BodyItem,
    FocusMetric,
    Header,
    MessageType,
    NvtxState,
    Process,
    Report,
    RuleItem,
    RuleMessage,
    RuleResult,
    Section,
    SectionMetric,
    Table,
)


def phase(name: str, duration: int, size: int = 5_000) -> Action:
    """Return the action of a phase; `duration` in ns, `size` bytes read."""
    action = Action(name, name, name, thread_id=1)
    action.stream_name = "link"
    action.set("link__time_duration.sum", duration)
    action.set("file__bytes_read.sum", size, {"a.cubin": size - 1000, "b.cubin": 1000})
    action.set("link__target_arch", "sm_100")
    action.nvtx = NvtxState()
    action.nvtx.push(1, ["link", name], domain="pylink")
    action.sections = [
        Section(
            "LinkInput",
            "Inputs",
            order=1,
            description="What was read.",
            header=Header(
                metrics=[
                    SectionMetric("link__time_duration.sum", "Time"),
                    SectionMetric("gone__bytes.sum", "Gone"),
                ]
            ),
            body=[
                Body(
                    [
                        BodyItem(
                            bar_chart=BarChart(
                                "By file", metrics=[SectionMetric("file__bytes_read.sum", "Bytes")]
                            )
                        ),
                        BodyItem(
                            table=Table(
                                "Settings",
                                columns=1,
                                metrics=[SectionMetric("link__target_arch", "Target")],
                            )
                        ),
                    ]
                )
            ],
        )
    ]
    result = RuleResult("R", "A rule", section_identifier="LinkInput")
    result.add(
        RuleItem(
            RuleMessage("Use <fewer> @section:X:inputs@.", MessageType.WARNING, name="Title"),
            focus_metrics=[FocusMetric(None, "link__estimated_speedup.pct", 12.0)],
        )
    )
    action.rule_results = [result]
    return action


def report(scale: int = 1) -> Report:
    """Return a report of a link with two phases, with all values multiplied by `scale`."""
    return Report(
        Process(1234, "host", "pylink"),
        actions=[phase("read", 1_500_000 * scale, 5_000 * scale), phase("merge", 500_000 * scale)],
    )


def write_file(folder: Path) -> str:
    """Write the report to a file, and return the path."""
    path = folder / "link.ncu-rep"
    write_report(report(), path)
    return str(path)


def show(capfd: pytest.CaptureFixture[str], *words: str) -> str:
    """Return the output of `pylink report`, which must succeed."""
    assert main(["report", *words], tool="pylink") == 0, capfd.readouterr().err
    return capfd.readouterr().out
