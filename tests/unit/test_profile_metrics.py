"""`--metrics` of a link: what is collected, and what is refused before or after it."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import demo

import pylink
from pylink.report import read_report

ARCH = "sm_90a"


def linked(path: Path, **options: object) -> pylink.LinkResult:
    return pylink.link(demo.cubins(ARCH), arch=ARCH, profile=path, **options)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYLINK_SECTIONS", str(tmp_path / "sections"))


def test_the_metrics_asked_for_are_all_there_is(tmp_path: Path) -> None:
    linked(tmp_path / "r.ncu-rep", metrics=["regex:file__bytes.*", "sect__merged.sum"])
    report = read_report(tmp_path / "r.ncu-rep")
    found = {name for action in report.actions for name in action.metrics}
    kept = ("device__", "launch__", "gpu__time", "link__time_duration", "link__target_arch")
    assert {name for name in found if not name.startswith(kept)} == {
        "file__bytes_read.sum",
        "file__bytes_input.sum",
        "sect__merged.sum",
    }
    assert len(report.actions) == 8
    assert not any(action.sections or action.rule_results for action in report.actions)


def test_sections_that_are_named_stay(tmp_path: Path) -> None:
    linked(tmp_path / "r.ncu-rep", metrics=["sect__merged.sum"], section=["LinkMemory"])
    report = read_report(tmp_path / "r.ncu-rep")
    shown = {section.identifier for action in report.actions for section in action.sections}
    assert shown == {"LinkMemory"}
    assert any("sect__merged.sum" in action.metrics for action in report.actions)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("link__time_duratoin.sum", "no metric 'link__time_duratoin.sum'"),
        ("regex:((", "unterminated subpattern"),
        ("regex:nothing.*", "no metric 'regex:nothing.*' in the report"),
        ("derived__nothing", "no metric 'derived__nothing' in the report"),
    ],
)
def test_a_metric_that_is_not_there_is_an_error(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(pylink.LinkError) as failure:
        linked(tmp_path / "r.ncu-rep", metrics=[name])
    assert reason in str(failure.value)
    assert not (tmp_path / "r.ncu-rep").exists()


def test_a_mistaken_name_costs_no_link(tmp_path: Path) -> None:
    with pytest.raises(pylink.LinkError):
        linked(tmp_path / "r.ncu-rep", metrics=["typo"], output=tmp_path / "out.cubin")
    assert not (tmp_path / "out.cubin").exists()


def test_metrics_without_a_profile_are_refused() -> None:
    with pytest.raises(pylink.LinkError, match="no --profile"):
        pylink.link(demo.cubins(ARCH), arch=ARCH, metrics=["link__time_duration.sum"])
