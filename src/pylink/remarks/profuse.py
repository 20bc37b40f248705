"""Profuse channels: texts that follow the search for equal Mercury sections step by step.

Unlike remarks, they are not meant for tools, and go to standard error only:

profusededup   every comparison of two files: outcome, first difference, cost; off by default
profusetwins   every section: the first one of the link that is equal to it, and whether that one
               replaces it; on in wizard mode

`-Xopt -profuseX=true|false` switches the channel profuseX on or off. Wizard mode is on if the
environment variable PYLINK_WIZARD is neither empty nor 0. If a channel is on, the link stores its
comparisons.
"""

from __future__ import annotations

import os

from pylink.diagnostics.stream import printable, write
from pylink.locate.places import places_of
from pylink.observer import Observer
from pylink.phases.results import Merged
from pylink.tables import section_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pylink.mercury import Stats, Verdict
    from pylink.mercury.decisions import Decision, Folding

DEDUP = "profusededup"
TWINS = "profusetwins"

# The environment variable for wizard mode, in which the channel TWINS is on by default.
WIZARD = "PYLINK_WIZARD"


def _wizard_mode() -> bool:
    """Return whether the environment turns on wizard mode, and so the channel TWINS."""
    return os.environ.get(WIZARD, "0") not in ("", "0")


def enabled_channels(states: Mapping[str, bool]) -> frozenset[str]:
    """Return the names of the channels that are on.

    `states` has the channels that -Xopt names, with True for on and False for off.
    """
    names = set()
    if states.get(DEDUP, False):
        names.add(DEDUP)
    if states.get(TWINS, _wizard_mode()):
        names.add(TWINS)
    return frozenset(names)


class ProfuseObserver(Observer):
    """Writes what channels (DEDUP, TWINS) say on equal Mercury sections to standard error."""

    __slots__ = ("_channels",)

    records_folds = True  # the link stores its comparisons

    def __init__(self, channels: frozenset[str]) -> None:
        self._channels = channels

    def phase_ended(self, tag: str, result: object) -> None:
        """Write the lines when the phase merge has ended, which compares the sections."""
        if tag == "merge":
            assert isinstance(result, Merged)
            folding = result.folding
            for channel, lines in ((DEDUP, _dedup_lines), (TWINS, _twin_lines)):
                if channel in self._channels:
                    texts = (
                        (_reason_without_folding(result),)
                        if folding is None
                        else lines(result, folding)
                    )
                    for line in texts:
                        write(None, f"{channel}: {printable(line)}\n")


def _reason_without_folding(merged: Merged) -> str:
    """Return the reason why this link does not look for equal sections."""
    job = merged.objects.job
    if not job.executable:
        return "-r folds nothing"
    if job.options.merc_dedup == "off":
        return "--merc-dedup=off folds nothing"
    return f"{job.target.name} has no Mercury sections"


def _dedup_lines(merged: Merged, folding: Folding) -> Iterable[str]:
    """Yield lines on files that were not read, comparisons, decisions on files, and the total cost.

    `folding` has the comparisons that the link made, and its decisions.
    """
    names = merged.objects.names
    for number, reason in folding.refused:
        yield f"{names[number]}: not read: {reason}"
    yield from map(_verdict_line, folding.result.compared)
    for decision in folding.decisions:
        yield _decision_line(names, decision)
    yield f"{len(folding.decisions)} files, {_cost(folding.result.stats)}"


def _verdict_line(verdict: Verdict) -> str:
    """Return the line of one comparison: both names, the outcome and its cost."""
    outcome = "accepted"
    if verdict.code:
        outcome = f"rejected in stage {verdict.stage} with {verdict.code}: {verdict.reason}"
    names = f"{verdict.candidate.name} against {verdict.reference.name}"
    return f"{names}: {outcome}; {_cost(verdict.stats)}"


def _decision_line(names: list[str], decision: Decision) -> str:
    """Return the line of one input: kept, or folded into another (its sections are replaced)."""
    name = names[decision.file]
    if decision.reference is None:
        return f"{name}: kept"
    if decision.stronger is not None:
        return f"{name}: kept: {decision.reason}"
    assert decision.verdict is not None
    size = decision.verdict.candidate.size
    return f"{name}: folds into {names[decision.reference]}, {size} bytes of payload"


def _cost(stats: Stats) -> str:
    """Return the counts of a comparison as a text, such as `pairs 1, digests 2`."""
    return ", ".join(f"{name} {value}" for name, value in stats.counts().items())


def _twin_lines(merged: Merged, folding: Folding) -> Iterable[str]:
    """Yield a line for each Mercury section with its leader, and one for each that is replaced.

    The leader is the first of all equal sections, in the order of the files.
    """
    from pylink.dedup.analysis import section_twins

    objects, items = merged.objects, folding.items
    for twin in section_twins(items):
        text = f"{twin.name} of {items[twin.owner].name}, {twin.size} bytes: "
        if twin.leader is None:
            yield text + "no equal one before it"
        else:
            yield text + f"leader found in {items[twin.leader].name}"
    places = places_of(objects)
    for number, stand_in in enumerate(merged.stand_ins):
        if stand_in >= 0:
            section, reference = (
                f"{section_name(objects, row)} of {places.name_of(row)}"
                for row in (number, stand_in)
            )
            yield f"{section}: replaced by {reference}"
