"""Reads reports of any version; errors name the file, and the line if one is at fault."""

from __future__ import annotations

import os
import re
from dataclasses import fields

from pylink.aprof.limits import INPUT_METRICS, MAX_COST, MAX_COUNT, MAX_ID, columns
from pylink.aprof.model import BB_COUNT, ROOT, TIME_USEC, Context, Point, Report, Routine
from pylink.files.reading import HEAD_SIZE, is_text, read_incoming

NUMBER = re.compile(r"-?[0-9]{1,40}")
# Name, image and id of a line with the tag r.
ROUTINE = re.compile(r'"([^"]+)" "([^"]+)" (\S+)')
# By each name of a metric that readers accept: the name of the metric in this package.
METRICS = {BB_COUNT: BB_COUNT, "bb_count": BB_COUNT, TIME_USEC: TIME_USEC}
# Names of the columns of a point: the fields of `Point`.
COLUMN_NAMES = tuple(column.name for column in fields(Point))
# Tags of lines that a viewer adds for its own use; they are skipped without a warning.
PRIVATE = ("fav",)


# Attributes of the report by the tag of the line with their text.
TEXTS = {"e": "modified", "t": "created", "f": "command", "a": "application"}


class MalformedReport(ValueError):
    """The file is not a report; the message begins with its name and the line at fault, if any."""


def read(path: str | os.PathLike[str]) -> Report:
    """Read a report from a file; MalformedReport for another file, OSError if it is unreadable."""
    return parse(read_incoming(path, is_wanted=is_text), os.fspath(path))


def parse(data: bytes, name: str = "<report>") -> Report:
    """Read the report in `data`, which messages call `name`; MalformedReport for other data.

    Unknown lines are skipped with a warning. A point with inconsistent numbers is kept, with a
    warning.
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
    # Only line feeds end a line. A name may contain other separators that str.splitlines splits at.
    for line in text.split("\n"):
        reader.read_line(line.removesuffix("\r"))
    report = reader.finish()
    if not reader.line_count:
        raise MalformedReport(
            f"{name}: no report of aprof: no line begins with a tag of its format"
        )
    return report


class _Reader:
    """Reads the lines of a report; `line` is the number of the present line, from 1 on."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.line = 0
        self.report = Report(metric=BB_COUNT, version=0)
        self.routines: dict[int, Routine] = {}
        self.contexts: dict[int, Context] = {}
        # Points and names may precede the line of their owner, a routine or a context. An element
        # has the number of its line, its tag, the id of the owner, and the point or name.
        self.points: list[tuple[int, str, int, Point]] = []
        self.names: list[tuple[int, str, int, str]] = []
        # Line numbers of contexts, by id.
        self.lines: dict[int, int] = {}
        # Number of lines with a tag of the format; a file without any is not a report.
        self.line_count = 0
        # Methods by tag; each gets the tag and the text after it.
        self.readers = {
            "v": self._read_version,
            "m": self._read_metric,
            "i": self._read_input_metric,
            "k": self._read_total,
            "c": self._read_comment,
            "r": self._read_routine,
            "u": self._read_name,
            "d": self._read_name,
            "p": self._read_point,
            "q": self._read_point,
            "x": self._read_context,
        }

    def fail(self, message: str, line: int = 0) -> MalformedReport:
        """Return the exception for an error in a line (0: the present one)."""
        return MalformedReport(f"{self.name}:{line or self.line}: {message}")

    def warn(self, message: str, line: int = 0) -> None:
        """Add a warning about a line (0: the present one)."""
        self.report.warnings.append(f"{self.name}:{line or self.line}: {message}")

    def read_line(self, line: str) -> None:
        """Read one line."""
        self.line += 1
        tag, _, text = line.strip(" \t").partition(" ")
        if not tag:
            return
        self.line_count += 1
        if tag in TEXTS:
            setattr(self.report, TEXTS[tag], text)
        elif tag in self.readers:
            self.readers[tag](tag, text)
        elif tag not in PRIVATE:
            self.line_count -= 1
            self.warn(f"unknown tag {tag!r}")

    def _read_version(self, _: str, text: str) -> None:
        self.report.version = self.parse_number("version", text, MAX_ID)

    def _read_metric(self, _: str, text: str) -> None:
        metric = METRICS.get(text.strip())
        if metric is None:
            raise self.fail(f"unknown metric {text.strip()!r}")
        self.report.metric = metric

    def _read_input_metric(self, _: str, text: str) -> None:
        if text.strip() not in INPUT_METRICS:
            raise self.fail(f"unknown input metric {text.strip()!r}")
        self.report.input_metric = text.strip()

    def _read_total(self, _: str, text: str) -> None:
        self.report.total = self.parse_number("total cost", text, MAX_COST)

    def _read_comment(self, _: str, text: str) -> None:
        self.report.comments.append(text)

    def _read_name(self, tag: str, text: str) -> None:
        """Read an id and a name after the tags u (mangled) and d (full)."""
        id_text, _, name = text.partition(" ")
        routine_id = self.parse_number("routine id", id_text, MAX_ID)
        self.names.append((self.line, tag, routine_id, self.unquote(name)))

    def parse_number(self, noun: str, text: str, limit: int, least: int = 0) -> int:
        """Return the whole number in a text, from `least` to `limit`; messages call it `noun`."""
        text = text.strip()
        if not NUMBER.fullmatch(text):
            raise self.fail(f"{noun} is not a whole number: {text[:40]!r}")
        value = int(text)
        if not least <= value <= limit:
            raise self.fail(f"{noun} {value} is not from {least} to {limit}")
        return value

    def unquote(self, text: str) -> str:
        """Return a name without quotes around it."""
        text = text.strip()
        if len(text) >= 2 and text[0] == text[-1] == '"':
            text = text[1:-1]
        if not text:
            raise self.fail("a name is missing")
        return text

    def _read_routine(self, _: str, text: str) -> None:
        """Read `"name" "image" id` after the tag r."""
        match = ROUTINE.match(text.strip())
        if match is None:
            raise self.fail('expected r "routine" "image" id')
        routine_id = self.parse_number("routine id", match[3], MAX_ID)
        if routine_id in self.routines:
            raise self.fail(f"routine {routine_id} is there twice")
        self.routines[routine_id] = Routine(routine_id, match[1], match[2])

    def _read_context(self, _: str, text: str) -> None:
        """Read the ids of routine, context and parent after the tag x."""
        words = text.split()
        if len(words) != 3:
            raise self.fail("expected x routine context parent")
        routine = self.parse_number("routine id", words[0], MAX_ID)
        number = self.parse_number("context id", words[1], MAX_ID)
        parent = self.parse_number("parent id", words[2], MAX_ID, ROOT)
        if number in self.contexts:
            raise self.fail(f"context {number} is there twice")
        self.contexts[number] = Context(number, routine, parent)
        self.lines[number] = self.line

    def _read_point(self, tag: str, text: str) -> None:
        """Read an id and the columns of the version after the tags p and q."""
        words = text.split()
        present_columns = columns(self.report.version)
        if len(words) < 1 + len(present_columns):
            raise self.fail(
                f"version {self.report.version} has {1 + len(present_columns)} numbers "
                f"after {tag}, this line {len(words)}"
            )
        owner_id = self.parse_number("id", words[0], MAX_ID)
        values = dict.fromkeys(COLUMN_NAMES, 0)
        for column, word in zip(
            present_columns, words[1:], strict=False
        ):  # more numbers may follow
            values[column] = self.parse_number(column, word, MAX_COUNT)
        if "real" not in present_columns:
            values["real"] = values["sum"]
        point = Point(**values)
        for fault in _oddities(point, present_columns):
            self.warn(fault)
        self.points.append((self.line, tag, owner_id, point))

    def finish(self) -> Report:
        """Return the report after its last line.

        MalformedReport if a name, point or context has a routine or context that the report does
        not define, or if a context is above itself.
        """
        for line, tag, owner, text in self.names:
            routine = self.routines.get(owner)
            if routine is None:
                raise self.fail(f"routine {owner} has a name and no r line", line)
            if tag == "u":
                routine.mangled = text
            else:
                routine.full = text
        for line, tag, owner, point in self.points:
            owners: dict[int, Routine] | dict[int, Context]
            owners, noun = (self.routines, "routine") if tag == "p" else (self.contexts, "context")
            owner_row = owners.get(owner)
            if owner_row is None:
                definition = "r" if tag == "p" else "x"
                raise self.fail(f"{noun} {owner} has a point and no {definition} line", line)
            owner_row.points.append(point)
        self._check_contexts()
        self.report.routines = list(self.routines.values())
        self.report.contexts = list(self.contexts.values())
        return self.report

    def _check_contexts(self) -> None:
        """Check that each context has a routine and that its parents lead to the root."""
        rooted = {ROOT}  # contexts from which parents lead to the root
        for number, context in self.contexts.items():
            if context.routine not in self.routines:
                message = f"context {number} is of routine {context.routine}, which is not there"
                raise self.fail(message, self.lines[number])
            visited: set[int] = set()
            lower, upper = number, number
            while upper not in rooted:
                if upper not in self.contexts:
                    message = f"context {lower} has the parent {upper}, which is not there"
                    raise self.fail(message, self.lines[lower])
                if upper in visited:
                    raise self.fail(f"context {upper} is above itself", self.lines[upper])
                visited.add(upper)
                lower, upper = upper, self.contexts[upper].parent
            rooted |= visited


def _oddities(point: Point, present_columns: tuple[str, ...]) -> list[str]:
    """Return messages about numbers of a point that contradict each other.

    Other readers accept such points, so they are only worth a warning.

    `present_columns` has the columns of the report's version.
    """
    oddities = []
    if point.occ == 0:
        oddities.append("a point of no calls")
    elif not point.min * point.occ <= point.sum <= point.max * point.occ:
        oddities.append(
            f"{point.occ} calls from {point.min} to {point.max} do not cost {point.sum}"
        )
    elif "sqr" in present_columns and _too_small(point.sqr, point.sum, point.occ):
        oddities.append(f"squares of {point.occ} calls that cost {point.sum} exceed {point.sqr}")
    if point.occ and "self_max" in present_columns:
        least_sum, most_sum = point.self_min * point.occ, point.self_max * point.occ
        if not least_sum <= point.self_sum <= most_sum:
            oddities.append(
                f"{point.occ} own costs from {point.self_min} to {point.self_max} are not "
                f"{point.self_sum}"
            )
        elif "self_sqr" in present_columns and _too_small(
            point.self_sqr, point.self_sum, point.occ
        ):
            oddities.append(f"squares of own costs {point.self_sum} exceed {point.self_sqr}")
    return oddities


def _too_small(squares: int, total: int, calls: int) -> bool:
    """Return whether `squares` is below any possible sum of squares of calls with this total.

    MAX_COST stands for any larger sum.
    """
    return squares < MAX_COST and squares * calls < total * total
