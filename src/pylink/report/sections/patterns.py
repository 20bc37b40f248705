"""Patterns in place of a metric's name, which match several metrics.

Python's expressions may take exponential time, and section files come from other people. An
expression that is not obviously fast is matched in a process of its own, with a time limit.
"""

from __future__ import annotations

import re
from collections.abc import Collection

REGEX, GROUP, BREAKDOWN = "regex:", "group:", "breakdown:"
PATTERNS = (REGEX, GROUP, BREAKDOWN)

# Seconds that one expression may take for all names of an action.
TIME_LIMIT = 5.0
TOO_SLOW = f"it takes longer than {TIME_LIMIT:g} s to match"
# Expressions that took longer, remembered since many sections and actions use them.
_slow: set[str] = set()
# An expression with at most so many repetitions, none of a group, takes quadratic time: at most a
# second for a name of so many characters.
_MAX_REPEATS = 2
_MAX_NAME_LENGTH = 1000
_REPEATS = re.compile(r"[*+?{]")
# Repeated groups, lookarounds and references, which are not obviously fast.
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
    """The expression of a `regex:` pattern; re.error if it is invalid."""
    try:
        return re.compile(pattern.removeprefix(REGEX))
    except (RecursionError, OverflowError) as error:
        raise re.error("it is nested too deeply or repeats too often") from error


def matching_names(pattern: str, names: Collection[str]) -> list[str]:
    """The names that a `regex:` pattern fully matches.

    re.error if it is invalid or takes longer than `TIME_LIMIT`.
    """
    pattern_text = expression(pattern)
    if _is_fast(pattern_text.pattern, names):
        return [name for name in names if pattern_text.fullmatch(name)]
    if pattern_text.pattern in _slow:
        raise re.error(TOO_SLOW)
    return _match_in_process(pattern_text.pattern, names)


def _is_fast(text: str, names: Collection[str]) -> bool:
    return (
        len(_REPEATS.findall(text)) <= _MAX_REPEATS
        and _NOT_PLAIN.search(text) is None
        and max(map(len, names), default=0) <= _MAX_NAME_LENGTH
    )


def _match_in_process(text: str, names: Collection[str]) -> list[str]:
    """Match names in another process, with a time limit."""
    import json

    from pylink.subtools.programs import find_python
    from pylink.subtools.runner import Command, run_all

    argv = [find_python(), "-I", "-S", "-c", _CHILD]
    command = Command(argv, json.dumps([text, list(names)]).encode())
    (outcome,) = run_all([command], timeout=TIME_LIMIT)
    if outcome.is_late:
        _slow.add(text)
        raise re.error(TOO_SLOW)
    if outcome.failure:
        raise re.error(f"it cannot be matched: its process {outcome.failure}")
    matches: list[str] = json.loads(outcome.data)
    return matches
