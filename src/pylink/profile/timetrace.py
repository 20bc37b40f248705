"""Traces of a link in the format of Chrome's tracing, as written by clang and lld.

A trace is a JSON object: `traceEvents` holds complete events (`ph` X: `ts` and `dur` in
microseconds from the start of the link, `args.detail`), one `Total` event per name on a thread of
its own, and metadata that names process and threads; `beginningOfTime` is the start in
microseconds since 1970. The link contains its phases, a phase its steps; files that a helper
thread read or parsed are on that thread. Perfetto, chrome://tracing and speedscope can open it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from pylink.files.reading import is_text, read_incoming
from pylink.profile.counts import column
from pylink.rowformats import TIME
from pylink.timing import NS_PER_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.profile.model import Profile

Event = dict[str, Any]

LINK = "Link"
READ, PARSE = "Read", "Parse"
# Single inputs have events from this many nanoseconds on; shorter ones only count in the total.
# With thousands of inputs, writing events would take longer than reading them.
FILE_THRESHOLD_NS = 50_000
# Column of the wall time in a TIME row.
WALL_COLUMN = 1


class MalformedTrace(ValueError):
    """A file that is not a trace; the message names the file and the line or event."""


def trace_events(profile: Profile) -> list[Event]:
    """Return the events of a link: complete ones by thread and start, totals, then metadata."""
    pid = os.getpid()
    trace = _Trace(pid, profile.cost.start_ns)
    output = profile.output or ""
    trace.add(LINK, profile.cost.start_ns, profile.wall_ns, output)
    for phase in profile.phases:
        trace.add(phase.tag, phase.cost.start_ns, phase.wall_ns, f"{phase.size} {phase.unit}")
        for step in phase.steps:
            detail = f"{step.size} {step.unit}"
            trace.add(step.name, step.cost.start_ns, step.wall_ns, detail)
    trace.add_times(READ, profile.reading, profile.opened_names)
    trace.add_times(PARSE, profile.parsing, profile.names)
    trace.events.sort(key=lambda event: (event["tid"], event["ts"], -event["dur"]))
    return [*trace.events, *trace.totals(), *trace.metadata()]


class _Trace:
    """The events of a link; `lanes` has the numbers of threads with events, 0 for the link's."""

    def __init__(self, pid: int, start_ns: int) -> None:
        self.pid = pid
        self.start_ns = start_ns
        self.events: list[Event] = []
        # Number of events of each name, and their nanoseconds.
        self.sums: dict[str, tuple[int, int]] = {}
        self.lanes = {0}

    def add(self, name: str, start: int, wall: int, detail: str) -> None:
        """Add an event of the link's thread, with times in ns, to the events and to the totals."""
        count, total = self.sums.get(name, (0, 0))
        self.sums[name] = count + 1, total + wall
        self._add_event(name, start, wall, detail, 0)

    def add_times(self, name: str, times: bytes | None, items: Sequence[str]) -> None:
        """Add the files `items` to the totals, and those that took long to the events.

        `times` has a TIME row (start, wall and processor time, thread) for each file; None if times
        were not measured.
        """
        if times is None or len(times) != TIME.size * len(items):
            return
        walls = column(times, TIME.size, WALL_COLUMN).tolist()
        if walls:
            self.sums[name] = len(walls), sum(walls)
        for number, wall in enumerate(walls):
            if wall >= FILE_THRESHOLD_NS:
                start, _, _, lane = TIME.unpack_from(times, number * TIME.size)
                self._add_event(name, start, wall, items[number], lane)

    def _add_event(self, name: str, start: int, wall: int, detail: str, lane: int) -> None:
        """Add an event of a thread; `start` and `wall` are in nanoseconds."""
        # Start and end are rounded down, so that an event stays inside its enclosing event.
        begin = (start - self.start_ns) // 1000
        duration = (start - self.start_ns + wall) // 1000 - begin
        self.lanes.add(lane)
        self.events.append(_event("X", (self.pid, self.pid + lane), begin, duration, name, detail))

    def totals(self) -> list[Event]:
        """Return the total of each name as an event, longest first, each with its own thread id."""
        events = []
        tid = self.pid + max(self.lanes)
        by_time = sorted(self.sums.items(), key=lambda item: (-item[1][1], item[0]))
        for name, (count, total) in by_time:
            tid += 1
            event = _event("X", (self.pid, tid), 0, total // 1000, f"Total {name}", "")
            event["args"] = {"count": count, "avg ms": round(total / count / NS_PER_MS, 3)}
            events.append(event)
        return events

    def metadata(self) -> list[Event]:
        """Return the events that name the process and its threads."""
        names = [("process_name", 0, "pylink")]
        names += [("thread_name", lane, thread_name(lane)) for lane in sorted(self.lanes)]
        return [
            {
                "cat": "",
                "pid": self.pid,
                "tid": self.pid + lane,
                "ts": 0,
                "ph": "M",
                "name": kind,
                "args": {"name": name},
            }
            for kind, lane, name in names
        ]


def thread_name(lane: int) -> str:
    """Return the name of a thread, of which number 0 is the link's."""
    return "link" if lane == 0 else "helper" if lane == 1 else f"helper {lane}"


def _event(
    ph: str, thread: tuple[int, int], start: int, duration: int, name: str, detail: str
) -> Event:
    """Return an event of type `ph`, such as X, of `thread`, a process and a thread id.

    Times are in microseconds.
    """
    pid, tid = thread
    return {
        "pid": pid,
        "tid": tid,
        "ts": start,
        "ph": ph,
        "dur": duration,
        "name": name,
        "args": {"detail": detail},
    }


def encode(events: Sequence[Event], beginning: float) -> bytes:
    """Encode events as a trace file; `beginning` is in seconds since 1970."""
    document = {"traceEvents": events, "beginningOfTime": int(beginning * 1e6)}
    return json.dumps(document, separators=(",", ":")).encode("ascii") + b"\n"


def load(path: str | os.PathLike[str]) -> list[Event]:
    """Read the events of a trace file of pylink, clang or lld.

    MalformedTrace for another file, OSError if it cannot be read.
    """
    name = os.fspath(path)
    data = read_incoming(name, is_wanted=is_text)
    try:
        document = json.loads(data)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise MalformedTrace(f"{name}:{line}: not UTF-8") from None
    except json.JSONDecodeError as error:
        raise MalformedTrace(f"{name}:{error.lineno}: {error.msg}") from None
    except RecursionError:
        raise MalformedTrace(f"{name}:1: nested too deeply") from None
    events = document.get("traceEvents") if isinstance(document, dict) else document
    if not isinstance(events, list):
        raise MalformedTrace(f"{name}:1: no list of traceEvents")
    for number, event in enumerate(events):
        fault = _describe_fault(event)
        if fault:
            raise MalformedTrace(f"{name}:1: event {number}: {fault}")
    return events


def _describe_fault(event: object) -> str:
    """Describe the error in an event; empty if it is valid."""
    if not isinstance(event, dict):
        return "not an object"
    for key in ("ph", "name"):
        if not isinstance(event.get(key), str):
            return f"no text {key!r}"
    numbers = ("pid", "tid", "ts", "dur") if event["ph"] == "X" else ("pid", "tid")
    for key in numbers:
        value = event.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"no number {key!r}"
        if not 0 <= value <= sys.maxsize:  # this also refuses NaN
            return f"{key!r} is {value}"
    return ""
