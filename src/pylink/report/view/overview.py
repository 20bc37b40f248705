"""Summaries of a report: its origin, its phases, and the advice of its rules."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Sequence

from pylink.diagnostics.paths import shortener
from pylink.report.model import Action, Report, Scalar, Scope
from pylink.report.rules.frontend import NOT_APPLIED
from pylink.report.view.bytetree import ORIGINS
from pylink.report.view.numbers import format_value
from pylink.report.view.pages import DURATION, ActionPage, RuleMessage, action_name
from pylink.terminal.numbers import share_text

# The metric with the nanoseconds of processor time of an action.
PROCESSOR = "link__cpu_time_duration.sum"

# A link counts as one that waited if its wall time is at least WAITING_RATIO times its processor
# time, and longer by at least LEAST_WAIT_NS. From WARM_CACHE_PERCENT on, a rate of cache hits shows
# that the inputs were in the file cache.
WAITING_RATIO = 1.3
LEAST_WAIT_NS = 2e6
WARM_CACHE_PERCENT = 90.0

# Limit of the characters of a command line: that of a large link would fill the screen.
MAX_COMMAND_LENGTH = 160

# Limit of the shown actions of one name, such as comparisons of two inputs.
MAX_OF_NAME = 4


def put_whole_link_first(pages: Sequence[ActionPage]) -> list[ActionPage]:
    """Return the pages with the whole link, which is last in files, before its phases."""
    return sorted(pages, key=lambda page: page.action.scope is not Scope.RANGE)


def longest_of_each_name(pages: Sequence[ActionPage]) -> list[ActionPage]:
    """Return the pages of the `MAX_OF_NAME` longest actions of each name, in the same order.

    All actions without a time remain, too.
    """
    by_name: dict[str, list[ActionPage]] = defaultdict(list)
    for page in pages:
        if page.action.number(DURATION) is not None:
            by_name[page.action.function_name].append(page)
    omitted: set[int] = set()
    for namesakes in by_name.values():
        namesakes.sort(key=lambda page: page.action.number(DURATION) or 0, reverse=True)
        omitted.update(page.index for page in namesakes[MAX_OF_NAME:])
    return [page for page in pages if page.index not in omitted]


def advice(pages: Sequence[ActionPage]) -> list[tuple[str, RuleMessage]]:
    """Return warnings, errors and optimizations of rules, each once, largest gain first.

    Each comes after the name of the phase, or other action, that it is about.
    """
    by_text: dict[tuple[str, str], tuple[str, RuleMessage]] = {}
    for page in pages:
        for message in page.all_messages():
            if message.mark in ("WRN", "OPT", "ERR") and message.title != NOT_APPLIED:
                by_text.setdefault((message.rule, message.text), (phase_name(page.action), message))
    return sorted(by_text.values(), key=lambda pair: -_speedup(pair[1]))


def failures(pages: Sequence[ActionPage]) -> list[RuleMessage]:
    """Return the messages that say why rules could not be applied, each once.

    An error that a rule itself reports is not one of them: `advice` returns it.
    """
    by_text: dict[tuple[str, str], RuleMessage] = {}
    for page in pages:
        for message in page.all_messages():
            if message.title == NOT_APPLIED:
                by_text.setdefault((message.rule, message.text), message)
    return list(by_text.values())


def _waiting_text(report: Report) -> str:
    """Return sentences on the time for which a link waited, and why; "" if it did not wait."""
    link = next(report.ranges(), None)
    wall_ns = None if link is None else link.number(DURATION)
    processor_ns = None if link is None else link.number(PROCESSOR)
    if (
        link is None
        or not wall_ns
        or not processor_ns
        or wall_ns < WAITING_RATIO * processor_ns
        or wall_ns - processor_ns < LEAST_WAIT_NS
    ):
        return ""
    sentences = (
        f"It waited for {format_value(wall_ns - processor_ns, 'nsecond')} of that: its processor "
        f"time was {format_value(processor_ns, 'nsecond')}. "
    )
    hit_percent = link.number("file__cache_hit.pct")
    faults = link.number("link__page_faults_major.sum")
    if hit_percent is not None and hit_percent < WARM_CACHE_PERCENT:
        sentences += f"{share_text(100 - hit_percent, 100)} of the input came from disk."
    elif faults:
        sentences += f"{_with_plural(faults, 'page fault')} waited for a disk."
    else:
        sentences += "The machine was busy, or the output's disk slow: compare processor times."
    return sentences


def _with_plural(number: Scalar, noun: str) -> str:
    """Return a number with a noun, as `count_text`, but the digits in groups as in reports."""
    return f"{format_value(number, '')} {noun}{'' if number == 1 else 's'}"


def were_rules_applied(pages: Sequence[ActionPage]) -> bool:
    """Return whether rules were applied, even if they had no messages."""
    return any(page.action.rule_results for page in pages)


def _speedup(message: RuleMessage) -> float:
    """Return the estimated gain of a message in percent; 0 without an estimate."""
    values = [
        metric.metric_value for metric in message.focus if "speedup" in (metric.metric_name or "")
    ]
    return max((value for value in values if value is not None), default=0.0)


def phase_actions(report: Report) -> list[Action]:
    """Return the actions that are phases of a link: those with a time, except comparisons.

    Comparisons of inputs are in another stream than phases, which are in the stream "link".
    """
    return [
        action
        for action in report.launches()
        if action.number(DURATION) is not None and (action.stream_name or "link") == "link"
    ]


def phase_name(action: Action) -> str:
    """Return the name of a phase without the text in brackets on what it worked on."""
    return action.function_name or action_name(action)


def title_of(page: ActionPage) -> str:
    """Return the title of an action: its name, which for a phase omits what it worked on."""
    is_phase = page.action.number(PROCESSOR) is not None and page.action.scope is not Scope.RANGE
    return phase_name(page.action) if is_phase else page.name


def summary(report: Report) -> str:
    """Return sentences on the whole link; "" if the report is not about a link."""
    link = next(report.ranges(), None)
    wall_ns = None if link is None else link.number(DURATION)
    if link is None or wall_ns is None:
        return ""
    sentence = f"The link took {format_value(wall_ns, 'nsecond')}"
    files, size = link.number("file__opened.sum"), link.number("file__bytes_read.sum")
    if files is not None and size is not None:
        sentence += f" for {_with_plural(files, 'file')} of {format_value(size, 'byte')}"
    floor_ratio = link.number("link__time_per_copy_floor.ratio")
    if floor_ratio is not None:
        sentence += (
            f", {format_value(float(floor_ratio), '')} times the time of reading and writing"
        )
    measure = PROCESSOR if link.number(PROCESSOR) is not None else DURATION
    longest = max(
        phase_actions(report),
        key=lambda phase_action: phase_action.number(measure) or 0,
        default=None,
    )
    if longest is not None:
        sentence += f". Its longest phase was {phase_name(longest)}"
        sentence += f" with {format_value(longest.number(measure), 'nsecond')}"
        sentence += " of processor time" if measure == PROCESSOR else ""
    return " ".join(filter(None, (f"{sentence}.", _waiting_text(report))))


def path_shortener(report: Report | None) -> Callable[[str], str]:
    """Return a function that removes the common directory of the report's paths from a path.

    It also works on the title of several inputs, such as `400 x dir/g*.cubin`.
    """
    shorten = shortener(
        str(instance.id)
        for action in (report.actions if report else ())
        for name, metric in action.metrics.items()
        for instance in metric.instances
        if name != ORIGINS and isinstance(instance.id, str) and os.sep in instance.id
    )

    def shorten_title(name: str) -> str:
        count, separator, path = name.partition(" x ")
        return f"{count}{separator}{shorten(path)}" if separator else shorten(name)

    return shorten_title


def session_rows(report: Report, file: str, *, in_full: bool = False) -> list[tuple[str, str]]:
    """Return the origin of the report as pairs of label and text, without unknown values.

    A long command line is shortened unless `in_full`.
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
        (
            "Command line",
            command
            if in_full or len(command) <= MAX_COMMAND_LENGTH
            else f"{command[:MAX_COMMAND_LENGTH]}...",
        )
    )
    rows += [(version.provider, version.version) for version in session.version_info]
    if session.host_system_info is not None:
        rows.append(("Processor", session.host_system_info.processor or ""))
    return [(label, value) for label, value in rows if value]
