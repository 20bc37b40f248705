"""Compares two results: of two machines, or of two builds.

The ratio of two times mixes changes of the contender and of the machine. A control, which is the
same on both sides, separates them: nvlink if both have the same release, or else the contender that
only copies the inputs. So each contender has two changes: of its time, and of its ratio to the
control in the same round. Only a change in both is a change of the contender.

Intervals come only from the rounds of each result. The state of a machine may change between
measurements, so measure each side more than once, in turn, to be sure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from statistics import median

from pylink.bench.contenders import COPY, NVLINK
from pylink.bench.estimates import Estimate, change_of
from pylink.bench.results import WARM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.bench.results import Results

NO_DIFFERENCE = "no difference seen"
# Names of facts about a measurement, not about the link or the machine.
RUN_FACTS = ("date", "load", "folder", "rounds", "rest", "command", "growth")
# The name of the fact that shows whether the inputs were the same.
DIGEST = "digest of the inputs"


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one contender in one mode: of its time, and of its ratio to the control.

    The control is a contender that did not change: an nvlink of the same release, or the copy.
    `before` and `after` are median times in seconds. `time` is the factor from the times before to
    those after, `relative` that of the ratios to the control: None for the control itself, or
    without such ratios.
    """

    contender: str
    mode: str
    before: float
    after: float
    time: Estimate
    relative: Estimate | None

    @property
    def verdict(self) -> str:
        """The conclusion from both changes, as text."""
        absolute = direction(self.time)
        if self.relative is None:
            return absolute
        relative = direction(self.relative)
        if relative == NO_DIFFERENCE:
            is_same = absolute in (NO_DIFFERENCE, TOO_FEW)
            return NO_DIFFERENCE if is_same else f"{NO_DIFFERENCE} except for the machine's"
        if absolute == relative:
            return relative
        return f"{relative}, only beside the control" if relative != TOO_FEW else TOO_FEW


SLOWER, FASTER, TOO_FEW = "slower", "faster", "too few rounds to tell"


def direction(change: Estimate) -> str:
    """Return SLOWER, FASTER, NO_DIFFERENCE or TOO_FEW for the factor of a change."""
    if not change.certain:
        return TOO_FEW
    if change.low > 1:
        return SLOWER
    return FASTER if change.high < 1 else NO_DIFFERENCE


def control_of(before: Results, after: Results) -> str | None:
    """Return the control: an nvlink of the same release in both results, or the copy; else None."""
    common = [name for name in before.contenders() if name in after.contenders()]
    for name in common:
        if name.startswith(NVLINK) and _release(before, name) == _release(after, name) != "":
            return name
    return COPY if COPY in common else None


def _release(results: Results, name: str) -> str:
    """Return the release of an nvlink from its description; empty if unknown."""
    match = re.search(rf", {NVLINK} ([0-9.]+)", results.about.get(name, ""))
    return match[1] if match else ""


def compare(before: Results, after: Results) -> tuple[str | None, list[Change]]:
    """Return the control, and a change for each contender and mode that both results have.

    The control is a contender that did not change: others are compared with it within rounds.
    """
    control = control_of(before, after)
    changes = []
    for mode in before.modes():
        for name in before.contenders():
            seconds_before, seconds_after = before.seconds(name, mode), after.seconds(name, mode)
            if not seconds_before or not seconds_after:
                continue
            relative_change = None
            if control is not None and name != control:
                ratios_before, ratios_after = (
                    measured.ratios(name, control, mode) for measured in (before, after)
                )
                relative_change = (
                    change_of(ratios_before, ratios_after)
                    if ratios_before and ratios_after
                    else None
                )
            time_change = change_of(seconds_before, seconds_after)
            changes.append(
                Change(
                    name,
                    mode,
                    median(seconds_before),
                    median(seconds_after),
                    time_change,
                    relative_change,
                )
            )
    return control, changes


def other_facts(before: Results, after: Results) -> list[tuple[str, str, str]]:
    """Return the differing facts except RUN_FACTS: name, value before, value after."""
    names = dict.fromkeys([*before.facts, *after.facts])
    return [
        (name, before.facts.get(name, ""), after.facts.get(name, ""))
        for name in names
        if name not in RUN_FACTS and before.facts.get(name) != after.facts.get(name)
    ]


def warnings(before: Results, after: Results, names: tuple[str, str]) -> list[str]:
    """Return texts about conditions that make the comparison of files `names` less reliable."""
    warning_texts = []
    if before.facts.get(DIGEST) != after.facts.get(DIGEST):
        warning_texts.append("the links are not the same: their inputs differ")
    for results, name in zip((before, after), names, strict=True):
        load = results.load_when_busy()
        if load:
            warning_texts.append(f"{name}: other programs were at work ({load})")
    if WARM not in before.modes() or WARM not in after.modes():
        warning_texts.append("one of them has no rounds right after one another")
    return warning_texts
