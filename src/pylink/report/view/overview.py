"""What a report says as a whole: where it is from, its phases, and what its rules advise."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Sequence

from pylink.diagnostics.paths import shortener
from pylink.report.model import Action, Report, Scalar, Scope
from pylink.report.rules.frontend import NOT_APPLIED
from pylink.report.view.bytetree import ORIGINS
from pylink.report.view.numbers import text
from pylink.report.view.pages import DURATION, ActionPage, RuleMessage, action_name

# Processor nanoseconds of an action.
PROCESSOR = "link__cpu_time_duration.sum"

# Wall time that is so many times the processor time, and so many nanoseconds more, disagrees with
# it; percent of the input that a second link finds in the file cache.
DISAGREE = 1.3
LONG_WAIT = 2e6
WARM = 90.0

# Characters of a command line that are shown; that of a large link would fill the screen.
LONGEST = 160

# Actions of one name, such as comparisons of two inputs, that a page shows.
MOST_OF_NAME = 4


def whole_first(pages: Sequence[ActionPage]) -> list[ActionPage]:
    """The pages as people read them: the whole link, which files have last, before its phases."""
    return sorted(pages, key=lambda page: page.action.scope is not Scope.RANGE)


def longest_of_name(pages: Sequence[ActionPage]) -> list[ActionPage]:
    """The pages, of a link's actions of the same name only the `MOST_OF_NAME` that took longest."""
    by_name: dict[str, list[ActionPage]] = defaultdict(list)
    for page in pages:
        if page.action.number(DURATION) is not None:
            by_name[page.action.function_name].append(page)
    left_out: set[int] = set()
    for namesakes in by_name.values():
        namesakes.sort(key=lambda page: page.action.number(DURATION) or 0, reverse=True)
        left_out.update(page.index for page in namesakes[MOST_OF_NAME:])
    return [page for page in pages if page.index not in left_out]


def advice(pages: Sequence[ActionPage]) -> list[tuple[str, RuleMessage]]:
    """What rules warn of and call errors, by action, the largest estimated gain first, once."""
    by_text: dict[tuple[str, str], tuple[str, RuleMessage]] = {}
    for page in pages:
        for message in page.all_messages():
            if message.mark in ("WRN", "OPT", "ERR") and message.title != NOT_APPLIED:
                by_text.setdefault((message.rule, message.text), (phase_name(page.action), message))
    return sorted(by_text.values(), key=lambda pair: -_speedup(pair[1]))


def failures(pages: Sequence[ActionPage]) -> list[RuleMessage]:
    """What kept rules from working, each once: no advice, but what to do about the rule.

    An error that a rule itself speaks of is advice.
    """
    by_text: dict[tuple[str, str], RuleMessage] = {}
    for page in pages:
        for message in page.all_messages():
            if message.title == NOT_APPLIED:
                by_text.setdefault((message.rule, message.text), message)
    return list(by_text.values())


def waiting(report: Report) -> str:
    """Says when wall and processor time disagree, and why that may be; "" when they agree."""
    whole = next(report.ranges(), None)
    wall = None if whole is None else whole.number(DURATION)
    busy = None if whole is None else whole.number(PROCESSOR)
    if whole is None or not wall or not busy or wall < DISAGREE * busy or wall - busy < LONG_WAIT:
        return ""
    advice_text = (
        f"It waited for {text(wall - busy, 'nsecond')} of that: its processor time was "
        f"{text(busy, 'nsecond')}. "
    )
    cached = whole.number("file__cache_hit.pct")
    faults = whole.number("link__page_faults_major.sum")
    if cached is not None and cached < WARM:
        advice_text += f"{100 - cached:.0f}% of the input came from disk."
    elif faults:
        advice_text += f"{_counted(faults, 'page fault')} waited for a disk."
    else:
        advice_text += "The machine was busy, or the output's disk slow: compare processor times."
    return advice_text


def _counted(number: Scalar, what: str) -> str:
    return f"{text(number, '')} {what}{'' if number == 1 else 's'}"


def were_judged(pages: Sequence[ActionPage]) -> bool:
    """Whether rules were applied, which may have found nothing to say."""
    return any(page.action.rule_results for page in pages)


def _speedup(message: RuleMessage) -> float:
    values = [each.metric_value for each in message.focus if "speedup" in (each.metric_name or "")]
    return max((value for value in values if value is not None), default=0.0)


def phases(report: Report) -> list[Action]:
    """The actions that are phases: those with a duration, and not a comparison of two sections."""
    return [
        action
        for action in report.launches()
        if action.number(DURATION) is not None and (action.stream_name or "link") == "link"
    ]


def phase_name(action: Action) -> str:
    """What a phase is called without what it worked on."""
    return action.function_name or action_name(action)


def title_of(page: ActionPage) -> str:
    """What an action is called on a page: a phase by its name, others with what they worked on."""
    is_phase = page.action.number(PROCESSOR) is not None and page.action.scope is not Scope.RANGE
    return phase_name(page.action) if is_phase else page.name


def summary(report: Report) -> str:
    """The whole link in a sentence; empty for a report that is of no link."""
    whole = next(report.ranges(), None)
    took = None if whole is None else whole.number(DURATION)
    if whole is None or took is None:
        return ""
    sentence = f"The link took {text(took, 'nsecond')}"
    files, size = whole.number("file__opened.sum"), whole.number("file__bytes_read.sum")
    if files is not None and size is not None:
        sentence += f" for {_counted(files, 'file')} of {text(size, 'byte')}"
    floor = whole.number("link__time_per_copy_floor.ratio")
    if floor is not None:
        sentence += f", {text(float(floor), '')} times what reading and writing took"
    measure = PROCESSOR if whole.number(PROCESSOR) is not None else DURATION
    longest = max(phases(report), key=lambda each: each.number(measure) or 0, default=None)
    if longest is not None:
        sentence += f". Its longest phase was {phase_name(longest)}"
        sentence += f" with {text(longest.number(measure), 'nsecond')}"
        sentence += " of processor time" if measure == PROCESSOR else ""
    return " ".join(filter(None, (f"{sentence}.", waiting(report))))


def shortened(report: Report | None) -> Callable[[str], str]:
    """What takes the folder off a path that all paths of the report begin with.

    A title for several inputs, such as `400 x dir/g*.cubin`, loses it, too.
    """
    shorten = shortener(
        str(instance.id)
        for action in (report.actions if report else ())
        for name, metric in action.metrics.items()
        for instance in metric.instances
        if name != ORIGINS and isinstance(instance.id, str) and os.sep in instance.id
    )

    def shortened_title(name: str) -> str:
        count, times, path = name.partition(" x ")
        return f"{count}{times}{shorten(path)}" if times else shorten(name)

    return shortened_title


def session_rows(report: Report, file: str, *, whole: bool = False) -> list[tuple[str, str]]:
    """Where the report comes from, as pairs of a label and text; what it does not say is absent.

    With `whole` a long command line is there in full.
    """
    session, process = report.session, report.process
    rows = [("Report", file)]
    if process.process_name or process.process_id:
        rows.append(("Process", f"{process.process_name or '?'} ({process.process_id})"))
    rows.append(("Host", process.hostname or ""))
    if session.creation_time is not None:
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(session.creation_time))
        rows.append(("Created", moment))
    command = session.profiler_cmdline or ""
    rows.append(
        ("Command line", command if whole or len(command) <= LONGEST else f"{command[:LONGEST]}...")
    )
    rows += [(each.provider, each.version) for each in session.version_info]
    if session.host_system_info is not None:
        rows.append(("Processor", session.host_system_info.processor or ""))
    return [(label, shown) for label, shown in rows if shown]
