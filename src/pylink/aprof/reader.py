"""Reading reports of any version; what is malformed is named with its file and line."""

from __future__ import annotations

import os
import re
from dataclasses import fields

from pylink.aprof.limits import INPUT_METRICS, MAX_COST, MAX_COUNT, MAX_ID, columns
from pylink.aprof.model import BB_COUNT, ROOT, TIME_USEC, Context, Point, Report, Routine
from pylink.files.reading import HEAD_SIZE, is_text, read_incoming

NUMBER = re.compile(r"-?[0-9]{1,40}")
ROUTINE = re.compile(r'"([^"]+)" "([^"]+)" (\S+)')
METRICS = {BB_COUNT: BB_COUNT, "bb_count": BB_COUNT, TIME_USEC: TIME_USEC}
COLUMN_NAMES = tuple(column.name for column in fields(Point))
# What a viewer adds to a report for itself.
PRIVATE = ("fav",)


# Lines whose text is kept as it is: the attribute of the report.
TEXTS = {"e": "modified", "t": "created", "f": "command", "a": "application"}


class MalformedReport(ValueError):
    """A file that is not a report; the message begins with file and line."""


def read(path: str | os.PathLike[str]) -> Report:
    """The report in a file; MalformedReport, OSError."""
    return parse(read_incoming(path, wanted=is_text), os.fspath(path))


def parse(data: bytes, name: str = "<report>") -> Report:
    """The report in `data`, called `name` in messages; MalformedReport.

    Unknown lines are skipped with a warning; a point whose numbers cannot all be true stays, also
    with one.
    """
    reader = _Reader(name)
    if not data:
        raise MalformedReport(f"{name}:1: the file is empty")
    if not is_text(data[:HEAD_SIZE]):
        raise MalformedReport(f"{name}:1: it is not a report but binary data")
    text = data.decode("utf-8", "surrogateescape")
    if text.startswith("\ufeff"):
        reader.line = 1
        reader.warn("a byte order mark, which other readers take for a part of the first tag")
        text = text[1:]
    # Only line feeds end a line: a name may hold any other separator that str.splitlines knows.
    for line in text.split("\n"):
        reader.take(line.removesuffix("\r"))
    report = reader.finish()
    if not reader.routine_count:
        raise MalformedReport(
            f"{name}: no report of aprof: no line begins with a tag of its format"
        )
    return report


class _Reader:
    def __init__(self, name: str) -> None:
        self.name = name
        self.line = 0
        self.report = Report(metric=BB_COUNT, version=0)
        self.routines: dict[int, Routine] = {}
        self.contexts: dict[int, Context] = {}
        # Points and names may come before what they belong to; with the line each came from.
        self.points: list[tuple[int, str, int, Point]] = []
        self.names: list[tuple[int, str, int, str]] = []
        self.lines: dict[int, int] = {}
        # Lines whose tag is one of the format; a file without any is something else.
        self.routine_count = 0
        self.readers = {
            "v": self.version,
            "m": self.metric,
            "i": self.input_metric,
            "k": self.total,
            "c": self.comment,
            "r": self.routine,
            "u": self.take_name,
            "d": self.take_name,
            "p": self.point,
            "q": self.point,
            "x": self.context,
        }

    def fail(self, message: str, line: int = 0) -> MalformedReport:
        return MalformedReport(f"{self.name}:{line or self.line}: {message}")

    def warn(self, message: str, line: int = 0) -> None:
        self.report.warnings.append(f"{self.name}:{line or self.line}: {message}")

    def take(self, line: str) -> None:
        """Read one line."""
        self.line += 1
        tag, _, rest = line.strip(" \t").partition(" ")
        if not tag:
            return
        self.routine_count += 1
        if tag in TEXTS:
            setattr(self.report, TEXTS[tag], rest)
        elif tag in self.readers:
            self.readers[tag](tag, rest)
        elif tag not in PRIVATE:
            self.routine_count -= 1
            self.warn(f"unknown tag {tag!r}")

    def version(self, _: str, rest: str) -> None:
        self.report.version = self.number("version", rest, MAX_ID)

    def metric(self, _: str, rest: str) -> None:
        metric = METRICS.get(rest.strip())
        if metric is None:
            raise self.fail(f"unknown metric {rest.strip()!r}")
        self.report.metric = metric

    def input_metric(self, _: str, rest: str) -> None:
        if rest.strip() not in INPUT_METRICS:
            raise self.fail(f"unknown input metric {rest.strip()!r}")
        self.report.input_metric = rest.strip()

    def total(self, _: str, rest: str) -> None:
        self.report.total = self.number("total cost", rest, MAX_COST)

    def comment(self, _: str, rest: str) -> None:
        self.report.comments.append(rest)

    def take_name(self, tag: str, rest: str) -> None:
        number, _, text = rest.partition(" ")
        value = self.number("routine id", number, MAX_ID)
        self.names.append((self.line, tag, value, self.unquoted(text)))

    def number(self, what: str, text: str, limit: int, least: int = 0) -> int:
        text = text.strip()
        if not NUMBER.fullmatch(text):
            raise self.fail(f"{what} is not a whole number: {text[:40]!r}")
        value = int(text)
        if not least <= value <= limit:
            raise self.fail(f"{what} {value} is not from {least} to {limit}")
        return value

    def unquoted(self, text: str) -> str:
        text = text.strip()
        if len(text) >= 2 and text[0] == text[-1] == '"':
            text = text[1:-1]
        if not text:
            raise self.fail("a name is missing")
        return text

    def routine(self, _: str, rest: str) -> None:
        match = ROUTINE.match(rest.strip())
        if match is None:
            raise self.fail('expected r "routine" "image" id')
        number = self.number("routine id", match[3], MAX_ID)
        if number in self.routines:
            raise self.fail(f"routine {number} is there twice")
        self.routines[number] = Routine(number, match[1], match[2])

    def context(self, _: str, rest: str) -> None:
        parts = rest.split()
        if len(parts) != 3:
            raise self.fail("expected x routine context parent")
        routine = self.number("routine id", parts[0], MAX_ID)
        number = self.number("context id", parts[1], MAX_ID)
        parent = self.number("parent id", parts[2], MAX_ID, ROOT)
        if number in self.contexts:
            raise self.fail(f"context {number} is there twice")
        self.contexts[number] = Context(number, routine, parent)
        self.lines[number] = self.line

    def point(self, tag: str, rest: str) -> None:
        parts = rest.split()
        wanted = columns(self.report.version)
        if len(parts) < 1 + len(wanted):
            raise self.fail(
                f"version {self.report.version} has {1 + len(wanted)} numbers after {tag}, "
                f"this line {len(parts)}"
            )
        owner = self.number("id", parts[0], MAX_ID)
        values = dict.fromkeys(COLUMN_NAMES, 0)
        for column, word in zip(wanted, parts[1:], strict=False):  # more numbers may follow
            values[column] = self.number(column, word, MAX_COUNT)
        if "real" not in wanted:
            values["real"] = values["sum"]
        point = Point(**values)
        for fault in _oddities(point, wanted):
            self.warn(fault)
        self.points.append((self.line, tag, owner, point))

    def finish(self) -> Report:
        """The report, once every line was read and all that they name is there."""
        for line, tag, owner, text in self.names:
            routine = self.routines.get(owner)
            if routine is None:
                raise self.fail(f"routine {owner} has a name and no r line", line)
            if tag == "u":
                routine.mangled = text
            else:
                routine.full = text
        for line, tag, owner, point in self.points:
            known: dict[int, Routine] | dict[int, Context]
            known, what = (self.routines, "routine") if tag == "p" else (self.contexts, "context")
            owner_row = known.get(owner)
            if owner_row is None:
                definition = "r" if tag == "p" else "x"
                raise self.fail(f"{what} {owner} has a point and no {definition} line", line)
            owner_row.points.append(point)
        self._check_contexts()
        self.report.routines = list(self.routines.values())
        self.report.contexts = list(self.contexts.values())
        return self.report

    def _check_contexts(self) -> None:
        """Each context is of a routine, and its way up ends at the top."""
        safe = {ROOT}
        for number, context in self.contexts.items():
            if context.routine not in self.routines:
                message = f"context {number} is of routine {context.routine}, which is not there"
                raise self.fail(message, self.lines[number])
            way: set[int] = set()
            below, at = number, number
            while at not in safe:
                if at not in self.contexts:
                    message = f"context {below} has the parent {at}, which is not there"
                    raise self.fail(message, self.lines[below])
                if at in way:
                    raise self.fail(f"context {at} is above itself", self.lines[at])
                way.add(at)
                below, at = at, self.contexts[at].parent
            safe |= way


def _oddities(point: Point, present: tuple[str, ...]) -> list[str]:
    """What cannot be true of a point: readers accept it, and so does this one."""
    oddities = []
    if point.occ == 0:
        oddities.append("a point of no calls")
    elif not point.min * point.occ <= point.sum <= point.max * point.occ:
        oddities.append(
            f"{point.occ} calls from {point.min} to {point.max} do not cost {point.sum}"
        )
    elif "sqr" in present and too_small(point.sqr, point.sum, point.occ):
        oddities.append(f"squares of {point.occ} calls that cost {point.sum} exceed {point.sqr}")
    if point.occ and "self_max" in present:
        least, most = point.self_min * point.occ, point.self_max * point.occ
        if not least <= point.self_sum <= most:
            oddities.append(
                f"{point.occ} own costs from {point.self_min} to {point.self_max} are not "
                f"{point.self_sum}"
            )
        elif "self_sqr" in present and too_small(point.self_sqr, point.self_sum, point.occ):
            oddities.append(f"squares of own costs {point.self_sum} exceed {point.self_sqr}")
    return oddities


def too_small(squares: int, total: int, calls: int) -> bool:
    """Whether calls of this total must have a larger sum of squares.

    MAX_COST stands for any larger sum.
    """
    return squares < MAX_COST and squares * calls < total * total
