"""`--metrics`: a report with some of its metrics alone."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from pylink.report.errors import ReportError
from pylink.report.model import Report
from pylink.report.sections.patterns import REGEX, matching


def with_metrics(report: Report, wanted: Sequence[str]) -> Report:
    """The report with the metrics of these names, and of names that match a `regex:` to the end.

    ReportError for a metric that no action has, and for an expression that is none.
    """
    known = {name for action in report.actions for name in action.metrics}
    kept: set[str] = set()
    for one in wanted:
        found = _matching(one, known)
        if not found:
            raise ReportError(f"no metric '{one}' in the report; --page raw lists what it has")
        kept |= found
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


def _matching(wanted: str, known: set[str]) -> set[str]:
    if not wanted.startswith(REGEX):
        return known & {wanted}
    try:
        return set(matching(wanted, known))
    except re.error as error:
        raise ReportError(f"--metrics {wanted}: {error}") from error
