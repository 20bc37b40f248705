"""Writes reports, in the order that every known reader accepts.

This order is: header, routines, points, then contexts with parents first. The format has no
escapes, so quotes and line breaks in names are replaced.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import count

from pylink.aprof import limits
from pylink.aprof.model import BB_COUNT, ROOT, TIME_USEC, VERSION, Context, Point, Report, Routine
from pylink.files.atomic import write_whole

# The image of a routine without an image, since a name must not be empty.
NO_IMAGE = "NONE"


def write(report: Report, path: str | os.PathLike[str]) -> None:
    """Write a report atomically; OSError if it fails, ValueError if the format cannot hold it."""
    write_whole(os.fspath(path), encode(report))


def encode(report: Report) -> bytes:
    """Return the report in version 4 of the format; ValueError if the format cannot hold it."""
    _check(report)
    report = _add_missing_contexts(report)
    lines = [
        *_header_lines(report),
        *_routine_lines(report),
        *_point_lines(report),
        *_context_lines(report),
    ]
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def _add_missing_contexts(report: Report) -> Report:
    """Return a report in which each routine has a context, or none has.

    If any routine has a context, each routine without one gets one at the root, to which its points
    move. Readers that know contexts take points from them, and fail on a routine without a context.
    """
    with_context = {context.routine for context in report.contexts}
    without_context = [routine for routine in report.routines if routine.id not in with_context]
    if not with_context or not without_context:
        return report
    used_ids = {context.id for context in report.contexts}
    free_ids = (number for number in count() if number not in used_ids)
    new_contexts = [
        Context(next(free_ids), routine.id, points=routine.points) for routine in without_context
    ]
    replacements = {routine.id: replace(routine, points=[]) for routine in without_context}
    return replace(
        report,
        routines=[replacements.get(routine.id, routine) for routine in report.routines],
        contexts=[*report.contexts, *new_contexts],
    )


def clean(text: str) -> str:
    """Return the text with a question mark for each ASCII control character, as a line break."""
    return "".join("?" if ord(char) < 32 or ord(char) == 127 else char for char in text)


def quote(text: str) -> str:
    """Return a name in quotes; quotes in it become single ones. ValueError for an empty name."""
    if not text:
        raise ValueError("a name must not be empty")
    return '"' + clean(text).replace('"', "'") + '"'


def _header_lines(report: Report) -> Iterator[str]:
    """Yield the lines about the whole report."""
    yield f"v {VERSION}"
    yield f"m {report.metric}"
    if report.input_metric is not None:
        yield f"i {report.input_metric}"
    for tag, text in (("e", report.modified), ("t", report.created)):
        if text is not None:
            yield f"{tag} {clean(text)}"
    for comment in report.comments:
        yield f"c {clean(comment)}".rstrip()
    # Readers fail on the tags f and a if no text follows.
    if report.command:
        yield f"f {clean(report.command)}"
    if report.application:
        yield f"a {clean(report.application)}"
    if report.total is not None:
        yield f"k {report.total}"


def _routine_lines(report: Report) -> Iterator[str]:
    """Yield the lines of routines and of their other names."""
    for routine in report.routines:
        yield f"r {quote(routine.name)} {quote(routine.image or NO_IMAGE)} {routine.id}"
        if routine.mangled is not None:
            yield f"u {routine.id} {quote(routine.mangled)}"
        if routine.full is not None:
            yield f"d {routine.id} {quote(routine.full)}"


def _point_lines(report: Report) -> Iterator[str]:
    """Yield the lines of points, those of routines before those of contexts."""
    owners: list[tuple[str, Routine | Context]] = [("p", routine) for routine in report.routines]
    owners += [("q", context) for context in report.contexts]
    for tag, owner in owners:
        for point in owner.points:
            numbers = [str(_clamp_square(point, column)) for column in limits.COLUMNS[VERSION]]
            yield f"{tag} {owner.id} {' '.join(numbers)}"


def _clamp_square(point: Point, column: str) -> int:
    """Return a value of a point; a sum of squares above 64 bits becomes MAX_COST."""
    value: int = getattr(point, column)
    return min(value, limits.MAX_COST) if column in limits.SQUARES else value


def _context_lines(report: Report) -> Iterator[str]:
    """Yield the lines of contexts, each after its parent; ValueError if one is above itself."""
    children: dict[int, list[Context]] = {}
    for context in report.contexts:
        children.setdefault(context.parent, []).append(context)
    ready = children.pop(ROOT, [])[::-1]
    while ready:
        context = ready.pop()
        yield f"x {context.routine} {context.id} {context.parent}"
        ready += reversed(children.pop(context.id, []))
    if children:
        raise ValueError(f"no way from the top leads to context {next(iter(children))}")


def _check(report: Report) -> None:
    """Raise ValueError if the format cannot hold a report."""
    if report.metric not in (BB_COUNT, TIME_USEC):
        raise ValueError(f"the metric is {BB_COUNT} or {TIME_USEC}, not {report.metric!r}")
    if report.input_metric not in (None, *limits.INPUT_METRICS):
        raise ValueError(f"no input metric is called {report.input_metric!r}")
    _check_number("total cost", report.total or 0, limits.MAX_COST)
    _check_ids("routine", [routine.id for routine in report.routines])
    _check_ids("context", [context.id for context in report.contexts])
    owners: list[Routine | Context] = [*report.routines, *report.contexts]
    for point in (point for owner in owners for point in owner.points):
        for column in fields(Point):
            limit = limits.MAX_WRITTEN_COUNT if column.name in limits.COUNTS else limits.MAX_COST
            limit = limits.MAX_SQUARE if column.name in limits.SQUARES else limit
            _check_number(column.name, getattr(point, column.name), limit)
    if report.contexts:
        _check_contexts(report)


def _check_ids(noun: str, numbers: list[int]) -> None:
    """Raise ValueError for equal ids, and for ids that the format cannot hold."""
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"{noun} ids must be there once each")
    for number in numbers:
        _check_number(f"{noun} id", number, limits.MAX_WRITTEN_ID)


def _check_contexts(report: Report) -> None:
    """Raise ValueError if the routine or the parent of a context does not exist."""
    routines = {routine.id for routine in report.routines}
    contexts = {ROOT, *(context.id for context in report.contexts)}
    for context in report.contexts:
        if context.routine not in routines:
            raise ValueError(f"context {context.id} is of routine {context.routine}")
        if context.parent not in contexts:
            raise ValueError(f"context {context.id} has the parent {context.parent}")


def _check_number(noun: str, value: int, limit: int) -> None:
    """Raise ValueError unless a value is a whole number up to `limit`."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= limit:
        raise ValueError(f"{noun} {value!r} is not a whole number from 0 to {limit}")
