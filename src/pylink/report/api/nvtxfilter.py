"""Filters of actions by their NVTX state, as `--nvtx-include` and `--nvtx-exclude` take them.

    [regex:][domain@]ranges

Without a domain, the filter is about the default domain. If `ranges` contains `/`, `[` or `]`, it
is a pattern for the stack of push/pop ranges of the action's thread. Names separated by slashes are
adjacent in the stack; `*` between them stands for any number of ranges, `+` for exactly one. `[`
before the first name is the bottom of the stack and `]` after the last name its top, as in `Top]`
and `Top]/`. `+` at the end stands for exactly one range above the last name. Otherwise `ranges` is
a list of start/end ranges, separated by commas, which must all be open. After `regex:`, the domain
and each name are regular expressions that are searched for in names.

Results are those of Nsight Compute 2022.3. A pattern that begins with a wildcard, or has one before
`]`, matches nothing. If a name is in the stack twice, the range nearer to the top counts. Only the
last of consecutive wildcards counts. Two things differ from 2022.3: `[A]` is the stack with A only,
and patterns without a name or wildcard, such as `/`, and invalid expressions are errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pylink.report.model import DEFAULT_DOMAIN, Action

# A function that says whether a filter accepts a name of a domain or range.
Test = Callable[[str], bool]
_WILDCARDS = ("*", "+")
# Ends of patterns that stand for the top of the stack: TOP is `]`, after which slashes and `*` may
# follow; LAST, for patterns after `regex:`, is `]` at the very end.
TOP, LAST = re.compile(r"\](/\**)*$"), re.compile(r"\]$")


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A pattern for a stack; `names` are tests of names, `before[i]` is the wildcard before name i.

    A wildcard is `*`, `+` or "". `after` is the wildcard after the last name. `bottom` is true if
    the pattern begins at the bottom of the stack, `top` if it ends at its top. A pattern that is
    not `matchable` matches nothing.
    """

    names: list[Test]
    before: list[str]
    after: str
    bottom: bool
    top: bool
    matchable: bool


@dataclass(frozen=True, slots=True)
class _Filter:
    """A parsed filter; `domain` tests the name of a domain.

    `pushed` is the pattern for push/pop ranges. If it is None, each test in `started` must accept
    the name of an open start/end range.
    """

    domain: Test
    started: list[Test]
    pushed: _Pattern | None


def actions_by_nvtx(
    actions: Sequence[Action], includes: Iterable[str], excludes: Iterable[str]
) -> tuple[int, ...]:
    """Return the indices of the actions that one of `includes` and none of `excludes` matches.

    Raises ValueError for a pattern without a name or wildcard, such as `/`, and for an invalid
    regular expression.
    """
    include_filters = [_parse(text) for text in includes]
    exclude_filters = [_parse(text) for text in excludes]
    return tuple(
        index
        for index, action in enumerate(actions)
        if any(_matches(nvtx_filter, action) for nvtx_filter in include_filters)
        and not any(_matches(nvtx_filter, action) for nvtx_filter in exclude_filters)
    )


def _parse(text: str) -> _Filter:
    """Parse a filter; TypeError for other objects, ValueError for an invalid text."""
    if not isinstance(text, str):
        raise TypeError(f"NVTX filters are strings, not {type(text).__name__}")
    is_expression = text.startswith("regex:")
    domain, separator, ranges = text.removeprefix("regex:").partition("@")

    def test(name: str) -> Test:
        """Return a test for this name; after `regex:`, it searches for this expression."""
        if not is_expression:
            return name.__eq__
        try:
            pattern = re.compile(name)
        except re.error as error:
            raise ValueError(f"NVTX filter {text!r}: {error}") from error
        return lambda candidate: pattern.search(candidate) is not None

    if not separator:
        ranges = domain
    in_domain = test(domain) if separator else DEFAULT_DOMAIN.__eq__
    if not any(sign in ranges for sign in "/[]"):
        return _Filter(in_domain, [test(name) for name in ranges.split(",")], None)
    return _Filter(in_domain, [], _pattern(ranges, test, text))


def _pattern(ranges: str, test: Callable[[str], Test], text: str) -> _Pattern:
    """Parse the pattern for a stack from `ranges`, a part of the filter `text`.

    `test` makes, from a name in the pattern, the function that tests names of ranges. ValueError
    if the pattern has neither a name nor a wildcard.
    """
    # In an expression, `]` may end a character class: only one at the very end is of the pattern.
    is_expression = text.startswith("regex:")
    bottom, end = ranges.startswith("["), (LAST if is_expression else TOP).search(ranges)
    top = end is not None
    pieces = ranges[bottom : end.start() if end else len(ranges)].split("/")
    # A bracket belongs to the name beside it. If no name is there, the pattern matches nothing.
    matchable = not (bottom and not pieces[0]) and not (top and pieces[-1] in ("", *_WILDCARDS))
    names: list[Test] = []
    before: list[str] = []
    wildcard = ""
    for piece in filter(None, pieces):
        if piece in _WILDCARDS:
            wildcard = piece
            continue
        names.append(test(piece))
        before.append(wildcard)
        wildcard = ""
    if not names and not wildcard:
        raise ValueError(f"NVTX filter {text!r} names no range")
    if not names or before[0]:
        matchable = False
    return _Pattern(names, before, wildcard, bottom, top, matchable)


def _matches(nvtx_filter: _Filter, action: Action) -> bool:
    """Return whether a filter accepts the ranges that were open when an action ran."""
    state = action.nvtx
    if state is None:
        return False
    for domain in state.domains:
        if not nvtx_filter.domain(domain.name):
            continue
        if nvtx_filter.pushed is None:
            open_names = [started.name for started in state.started(domain.id)]
            if all(any(map(test, open_names)) for test in nvtx_filter.started):
                return True
        else:
            stack = [pushed.name for pushed in state.stack(action.thread_id, domain.id)]
            if _stack_matches(nvtx_filter.pushed, stack):
                return True
    return False


def _stack_matches(pattern: _Pattern, stack: list[str]) -> bool:
    """Return whether a pattern matches the names of a stack, which are bottom first."""
    if not pattern.matchable or not stack:
        return False
    if pattern.bottom and not pattern.names[0](stack[0]):
        return False
    last_level = None
    for test, wildcard in zip(pattern.names, pattern.before, strict=True):
        highest_level = next(
            (level for level in reversed(range(len(stack))) if test(stack[level])), None
        )
        if highest_level is None or (
            last_level is not None and not _fits_wildcard(highest_level - last_level, wildcard)
        ):
            return False
        last_level = highest_level
    top_level = len(stack) - 1
    if pattern.top and last_level != top_level:
        return False
    return pattern.after != "+" or last_level == top_level - 1


def _fits_wildcard(distance: int, wildcard: str) -> bool:
    """Return whether two names may be `distance` levels apart with this wildcard between them.

    `*` allows any distance upwards, even 0, `+` one level between them, and "" none.
    """
    if wildcard == "*":
        return distance >= 0
    return distance == (2 if wildcard else 1)
