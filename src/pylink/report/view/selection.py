"""`--metrics`: reduces a report to some of its metrics."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from pylink.report.api.descriptions import label
from pylink.report.display import TARGET_ARCH, TIME
from pylink.report.errors import ReportError
from pylink.report.model import Report
from pylink.report.sections.patterns import REGEX, matching_names

# Metrics that a link with --metrics keeps, too: tools need them to show an action, its time and its
# target.
NEEDED_BY_TOOLS = (
    f"{REGEX}(device__attribute|launch)_.*",
    TIME,
    "link__time_duration.sum",
    TARGET_ARCH,
)


def with_metrics(report: Report, names: Sequence[str]) -> Report:
    """Return a report with only the metrics that `names` selects; each is a name or a `regex:`.

    Actions without such a metric are omitted, and so are all sections. ReportError for a name or
    expression that selects no metric, and for an invalid expression.
    """
    all_names = {name for action in report.actions for name in action.metrics}
    selected: set[str] = set()
    for name in names:
        matches = _matching(name, all_names)
        if not matches:
            raise ReportError(f"no metric '{name}' in the report; --page raw lists what it has")
        selected |= matches
    return dataclasses.replace(
        report,
        actions=[
            dataclasses.replace(
                action,
                sections=[],
                metrics={
                    name: metric for name, metric in action.metrics.items() if name in selected
                },
            )
            for action in report.actions
            if not selected.isdisjoint(action.metrics)
        ],
    )


def restrict_metrics(report: Report, names: Sequence[str], *, keeps_sections: bool) -> Report:
    """Return a link's report restricted to these metrics and those that tools need.

    With `keeps_sections`, only check the names, and return the report unchanged. ReportError for a
    metric that no action has.
    """
    restricted = with_metrics(report, [*names, *NEEDED_BY_TOOLS])
    return report if keeps_sections else restricted


def check_names(names: Sequence[str]) -> None:
    """Check before a link that the names are metrics of links; ReportError if not.

    A valid `regex:`, and a name that begins with `derived__`, are always accepted.
    """
    for name in names:
        if name.startswith(REGEX):
            _matching(name, set())
        elif label(name) == name and not name.startswith("derived__"):
            raise ReportError(f"no metric '{name}'; pylink report --query-metrics lists them")


def _matching(pattern: str, names: set[str]) -> set[str]:
    """Return those of `names` that `pattern`, a name or a `regex:`, selects."""
    if not pattern.startswith(REGEX):
        return names & {pattern}
    try:
        return set(matching_names(pattern, names))
    except re.error as error:
        raise ReportError(f"--metrics {pattern}: {error}") from error
