"""`--metrics`: a report with some of its metrics alone."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from pylink.report.api.descriptions import label
from pylink.report.display import TARGET_ARCH, TIME
from pylink.report.errors import ReportError
from pylink.report.model import Report
from pylink.report.sections.patterns import REGEX, matching

# What tools need to show an action at all, and how long it took.
SHOWN = (f"{REGEX}(device__attribute|launch)_.*", TIME, "link__time_duration.sum", TARGET_ARCH)


def with_metrics(report: Report, wanted: Sequence[str]) -> Report:
    """The report with the metrics of these names, and of names that match a `regex:` to the end.

    ReportError for a metric that no action has, and for an expression that is none.
    """
    known = {name for action in report.actions for name in action.metrics}
    kept: set[str] = set()
    for name in wanted:
        matches = _matching(name, known)
        if not matches:
            raise ReportError(f"no metric '{name}' in the report; --page raw lists what it has")
        kept |= matches
    return dataclasses.replace(
        report,
        actions=[
            dataclasses.replace(
                action,
                sections=[],
                metrics={name: each for name, each in action.metrics.items() if name in kept},
            )
            for action in report.actions
            if not kept.isdisjoint(action.metrics)
        ],
    )


def collected(report: Report, wanted: Sequence[str], *, keeps_sections: bool) -> Report:
    """What a link reports that was asked for these metrics: they alone, or beside its sections.

    ReportError for a metric that no action has.
    """
    chosen = with_metrics(report, [*wanted, *SHOWN])
    return report if keeps_sections else chosen


def check_names(wanted: Sequence[str]) -> None:
    """ReportError for what no link measures, before it has taken any time."""
    for name in wanted:
        if name.startswith(REGEX):
            _matching(name, set())
        elif label(name) == name and not name.startswith("derived__"):
            raise ReportError(f"no metric '{name}'; pylink report --query-metrics lists them")


def _matching(wanted: str, known: set[str]) -> set[str]:
    if not wanted.startswith(REGEX):
        return known & {wanted}
    try:
        return set(matching(wanted, known))
    except re.error as error:
        raise ReportError(f"--metrics {wanted}: {error}") from error
