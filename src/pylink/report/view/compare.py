"""What changed from one report to another."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pylink.report.api.metricname import unit
from pylink.report.display import TIME
from pylink.report.model import Action, Report, Scalar
from pylink.report.sections.patterns import PATTERNS
from pylink.report.view.numbers import number, text
from pylink.report.view.pages import DURATION, action_name

# The action that is all of a link, and what is said of it first.
WHOLE_LINK = "whole link"
WHOLE = (
    ("link__cpu_time_duration.sum", "The link's processor time"),
    ("link__time_duration.sum", "The link's time on the wall"),
)

# Metrics whose value is that of another one: they are there for their parts, or for other tools.
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

# By how much two links of the same inputs differ on one machine.
NOISE = 0.1


@dataclass(frozen=True, slots=True)
class Change:
    """A metric of one action before and after; None where a report does not have it."""

    action: str
    metric: str
    unit: str
    before: Scalar | None
    after: Scalar | None

    @property
    def ratio(self) -> float | None:
        """After over before; None unless both are numbers and the first is not 0."""
        if isinstance(self.before, str) or isinstance(self.after, str):
            return None
        if not self.before or self.after is None:
            return None
        return self.after / self.before

    @property
    def shown(self) -> str:
        """The change in words: +12.3%, new, gone, or the difference from 0."""
        if self.before is None:
            return "new"
        if self.after is None:
            return "gone"
        if isinstance(self.before, str) or isinstance(self.after, str):
            return "" if self.before == self.after else "differs"
        if self.ratio is None:
            sign = "+" if self.after > 0 else ""
            return f"{sign}{text(self.after, self.unit)}" if self.after else ""
        percent = 100 * (self.ratio - 1)
        return f"{percent:+.1f}%" if abs(percent) < 1000 else f"x{number(self.ratio)}"


def compare(before: Report, after: Report) -> list[Change]:
    """Every metric of both reports, those of equal actions side by side.

    Actions are equal that have the same name and are as many-th of it in their reports. A phase is
    equal to itself whatever its size, which is a part of the name that is shown.
    """
    old, new = _by_name(before), _by_name(after)
    changes: list[Change] = []
    for key in dict.fromkeys((*old, *new)):
        mine, theirs = old.get(key), new.get(key)
        shown = [action_name(each) for each in (mine, theirs) if each]
        name = shown[0] if len(set(shown)) == 1 else key[0]
        if key[1] > 1:
            name += f" ({key[1]})"
        names = {metric for action in (mine, theirs) if action for metric in action.metrics}
        for metric in sorted(names):
            changes.append(
                Change(
                    name,
                    metric,
                    unit(metric),
                    mine.value(metric) if mine else None,
                    theirs.value(metric) if theirs else None,
                )
            )
    return changes


def notable(changes: list[Change], least: float = 0.05) -> list[Change]:
    """The numbers that changed by at least that share, the largest changes of each action first.

    Settings and sizes of the device are not results, and are omitted.
    """
    kept = []
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
        kept.append(change)
    places = {name: at for at, name in enumerate(dict.fromkeys(each.action for each in changes))}
    kept.sort(
        key=lambda each: (
            each.action != WHOLE_LINK,
            places[each.action],
            -abs((each.ratio or 0) - 1),
            each.metric,
        )
    )
    # Totals of the whole link are those of a phase again, where a phase has the same number.
    known = {(each.metric, each.before, each.after) for each in kept if each.action == WHOLE_LINK}
    return [
        each
        for each in kept
        if each.action == WHOLE_LINK or (each.metric, each.before, each.after) not in known
    ]


def headline(changes: list[Change]) -> list[str]:
    """The whole link in words: wall and processor time, and whether that is more than noise."""
    sentences = []
    for metric, caption in WHOLE:
        lines = [
            change
            for change in changes
            if change.action == WHOLE_LINK and change.metric == metric and change.ratio
        ]
        for change in lines[:1]:
            ratio = change.ratio or 1.0
            if abs(ratio - 1) < NOISE:
                verdict = "no more than one link differs from the next"
            else:
                verdict = "slower" if ratio > 1 else "faster"
            sentences.append(
                f"{caption}: {text(change.before, change.unit)} before, "
                f"{text(change.after, change.unit)} now, {change.shown} ({verdict})"
            )
    return sentences


def _by_name(report: Report) -> dict[tuple[str, int], Action]:
    seen: Counter[str] = Counter()
    by_name: dict[tuple[str, int], Action] = {}
    for action in report.actions:
        of_link = action.number(DURATION) is not None
        name = (of_link and action.function_name) or action_name(action)
        seen[name] += 1
        by_name[name, seen[name]] = action
    return by_name
