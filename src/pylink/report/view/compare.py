"""Compares the metrics of two reports."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pylink.report.api.metricname import unit
from pylink.report.display import TIME
from pylink.report.model import Action, Report, Scalar
from pylink.report.sections.patterns import PATTERNS
from pylink.report.view.numbers import format_number, format_value
from pylink.report.view.pages import DURATION, action_name

# The name of the action for a whole link, and its metrics in the sentences of `headline`.
WHOLE_LINK = "whole link"
HEADLINE_METRICS = (
    ("link__cpu_time_duration.sum", "The link's processor time"),
    ("link__time_duration.sum", "The link's wall time"),
)

# Metrics whose value is also that of another one: they exist for their instances, or for other
# tools. The list of changes omits them.
REPEATED = frozenset(
    {
        TIME,
        "elf__bytes_by_function.sum",
        "elf__bytes_by_origin.sum",
        "elf__bytes_by_part.sum",
        "elf__sections_written.sum",
        "elf__write_time_duration.sum",
        "link__phase_cpu_time_duration.sum",
        "link__phase_time_duration.sum",
        "link__step_time_duration.sum",
        "reloc__applied_by_section.sum",
        "reloc__left_by_section.sum",
        "sect__copied_bytes.sum",
    }
)

# Changes of ten times the first value or more are shown as a factor, others in percent.
MOST_CHANGE = 10

# The usual relative difference of two links of the same inputs on one machine.
NOISE = 0.1
# Least relative change that is shown.
LEAST_CHANGE = 0.05


@dataclass(frozen=True, slots=True)
class Change:
    """A metric of one action in the first report (`before`) and in the second (`after`).

    A value is None if the report does not have it.
    """

    action: str
    metric: str
    unit: str
    before: Scalar | None
    after: Scalar | None

    @property
    def ratio(self) -> float | None:
        """The value after, divided by the one before; None without two numbers, or for 0 before."""
        if isinstance(self.before, str) or isinstance(self.after, str):
            return None
        if not self.before or self.after is None:
            return None
        return self.after / self.before

    @property
    def change_text(self) -> str:
        """The change as text: `+12.3%`, `x12`, `new` or `gone`; `differs` or "" for two strings.

        After a value of 0, it is the new value with its sign, or "" for 0 again.
        """
        if self.before is None:
            return "new"
        if self.after is None:
            return "gone"
        if isinstance(self.before, str) or isinstance(self.after, str):
            return "" if self.before == self.after else "differs"
        if self.ratio is None:
            sign = "+" if self.after > 0 else ""
            return f"{sign}{format_value(self.after, self.unit)}" if self.after else ""
        change = self.ratio - 1
        return f"{change:+.1%}" if abs(change) < MOST_CHANGE else f"x{format_number(self.ratio)}"


def compare(before: Report, after: Report) -> list[Change]:
    """Return a `Change` for each metric of each action of the reports, also for equal values.

    Actions correspond if they have the same name and the same position among actions of that name.
    Phases are compared by name without the text in brackets, which contains sizes.
    """
    old, new = _actions_by_name(before), _actions_by_name(after)
    changes: list[Change] = []
    for name_and_number in dict.fromkeys((*old, *new)):
        old_action, new_action = old.get(name_and_number), new.get(name_and_number)
        action_names = [action_name(action) for action in (old_action, new_action) if action]
        name = action_names[0] if len(set(action_names)) == 1 else name_and_number[0]
        if name_and_number[1] > 1:
            name += f" ({name_and_number[1]})"
        names = {
            metric for action in (old_action, new_action) if action for metric in action.metrics
        }
        for metric in sorted(names):
            changes.append(
                Change(
                    name,
                    metric,
                    unit(metric),
                    old_action.value(metric) if old_action else None,
                    new_action.value(metric) if new_action else None,
                )
            )
    return changes


def notable_changes(changes: list[Change], least: float = LEAST_CHANGE) -> list[Change]:
    """Return the numbers that changed by the share `least` or more, or that one report lacks.

    Changes of the whole link come first, then those of each action, the largest of an action first.
    Settings of device and launch and derived metrics are omitted, since they are not measured.
    Metrics that repeat others are omitted, too, and numbers that are 0 or missing in both reports.
    """
    selected = []
    for change in changes:
        if change.metric.startswith(("device__", "launch__", "derived__", *PATTERNS)):
            continue
        if change.metric in REPEATED:
            continue
        if isinstance(change.before, str) or isinstance(change.after, str):
            continue
        if change.ratio is not None and abs(change.ratio - 1) < least:
            continue
        if change.ratio is None and not change.before and not change.after:
            continue
        selected.append(change)
    action_names = dict.fromkeys(change.action for change in changes)
    positions = {name: number for number, name in enumerate(action_names)}
    selected.sort(
        key=lambda change: (
            change.action != WHOLE_LINK,
            positions[change.action],
            -abs((change.ratio or 0) - 1),
            change.metric,
        )
    )
    # A phase with the same number as the whole link is not repeated.
    link_numbers = {
        (change.metric, change.before, change.after)
        for change in selected
        if change.action == WHOLE_LINK
    }
    return [
        change
        for change in selected
        if change.action == WHOLE_LINK
        or (change.metric, change.before, change.after) not in link_numbers
    ]


def headline(changes: list[Change]) -> list[str]:
    """Return a sentence on the change of the link's processor time, and one on its wall time.

    Each says if the change is within the usual variation. Empty without a whole link in both.
    """
    sentences = []
    for metric, caption in HEADLINE_METRICS:
        link_changes = [
            change
            for change in changes
            if change.action == WHOLE_LINK and change.metric == metric and change.ratio
        ]
        for change in link_changes[:1]:
            ratio = change.ratio or 1.0
            if abs(ratio - 1) < NOISE:
                verdict = "within the usual variation"
            else:
                verdict = "slower" if ratio > 1 else "faster"
            sentences.append(
                f"{caption}: {format_value(change.before, change.unit)} before, "
                f"{format_value(change.after, change.unit)} now, {change.change_text} ({verdict})"
            )
    return sentences


def _actions_by_name(report: Report) -> dict[tuple[str, int], Action]:
    """Return {(name, number): action}, with number counting the actions of one name from 1."""
    counts: Counter[str] = Counter()
    by_name: dict[tuple[str, int], Action] = {}
    for action in report.actions:
        is_of_link = action.number(DURATION) is not None
        name = (is_of_link and action.function_name) or action_name(action)
        counts[name] += 1
        by_name[name, counts[name]] = action
    return by_name
