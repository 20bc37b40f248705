"""Patterns, which stand for several metrics in the place of a metric's name.

Python's expressions may take exponential time, and section files come from others. An expression
whose work is not bounded at a glance is matched by a process of its own, which has a time limit.
"""

from __future__ import annotations

import re
from collections.abc import Collection

REGEX, GROUP, BREAKDOWN = "regex:", "group:", "breakdown:"
PATTERNS = (REGEX, GROUP, BREAKDOWN)

# Seconds that one expression may take for all names of an action.
LIMIT = 5.0
TOO_SLOW = f"it takes longer than {LIMIT:g} s to match"
# Expressions that took longer: they stand in many sections, and for many actions.
_slow: set[str] = set()
# An expression with no more repetitions than this, none of them of a group, takes at most
# quadratic time: at most a second for a name of so many characters.
_MOST_REPEATS = 2
_LONGEST = 1000
_REPEATS = re.compile(r"[*+?{]")
# A repeated group, a lookaround and a reference: what such a glance does not understand.
_NOT_PLAIN = re.compile(r"\)[*+?{]|\(\?|\\[0-9]")

_CHILD = """\
import json, re, sys
source, _, result = sys.argv[1:]
with open(source, "rb") as stream:
    pattern, names = json.load(stream)
wanted = re.compile(pattern)
with open(result, "w") as stream:
    json.dump([name for name in names if wanted.fullmatch(name)], stream)
"""


def expression(pattern: str) -> re.Pattern[str]:
    """The expression of a `regex:` pattern; re.error when it is none."""
    try:
        return re.compile(pattern.removeprefix(REGEX))
    except (RecursionError, OverflowError) as error:
        raise re.error("it is nested too deeply or repeats too often") from error


def matching(pattern: str, names: Collection[str]) -> list[str]:
    """The names that a `regex:` pattern matches to their end.

    re.error when it is none, or takes longer than `LIMIT`.
    """
    pattern_text = expression(pattern)
    if _is_fast(pattern_text.pattern, names):
        return [name for name in names if pattern_text.fullmatch(name)]
    if pattern_text.pattern in _slow:
        raise re.error(TOO_SLOW)
    return _match_apart(pattern_text.pattern, names)


def _is_fast(text: str, names: Collection[str]) -> bool:
    return (
        len(_REPEATS.findall(text)) <= _MOST_REPEATS
        and _NOT_PLAIN.search(text) is None
        and max(map(len, names), default=0) <= _LONGEST
    )


def _match_apart(text: str, names: Collection[str]) -> list[str]:
    """As `matching`, by another process."""
    import json

    from pylink.subtools.programs import find_python
    from pylink.subtools.runner import Command, run_all

    argv = [find_python(), "-I", "-S", "-c", _CHILD]
    command = Command(argv, json.dumps([text, list(names)]).encode())
    (outcome,) = run_all([command], timeout=LIMIT)
    if outcome.is_late:
        _slow.add(text)
        raise re.error(TOO_SLOW)
    if outcome.failure:
        raise re.error(f"it cannot be matched: its process {outcome.failure}")
    matches: list[str] = json.loads(outcome.data)
    return matches
