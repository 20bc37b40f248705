"""Patterns in place of a metric's name, which match several metrics.

Python's regular expressions may take exponential time, and section files come from other people. An
expression that is not obviously fast is matched in a process of its own, with a time limit.
"""

from __future__ import annotations

import re
from collections.abc import Collection

# Prefixes of patterns, which stand for several metrics: those whose names match an expression, a
# group in the section, and the parts of a metric, which only the profiler knows.
REGEX, GROUP, BREAKDOWN = "regex:", "group:", "breakdown:"
PATTERNS = (REGEX, GROUP, BREAKDOWN)

# Seconds that one expression may take to be matched with the names of all metrics of an action.
TIME_LIMIT = 5.0
TOO_SLOW = f"it takes longer than {TIME_LIMIT:g} s to match"
# Expressions that took longer: they are not tried again for other sections and actions.
_slow_expressions: set[str] = set()
# An expression with at most _MAX_REPETITIONS, none of a group, takes quadratic time: about a
# million steps for a name of _MAX_NAME_LENGTH. It is matched here, without a limit of time.
_MAX_REPETITIONS = 2
_MAX_NAME_LENGTH = 1000
_REPETITIONS = re.compile(r"[*+?{]")
# Repeated groups, groups with a question mark such as lookarounds, and references, which may make
# an expression slow.
_NOT_PLAIN = re.compile(r"\)[*+?{]|\(\?|\\[0-9]")

# The program of the process that matches other expressions; its arguments are `INPUT -o OUTPUT`.
_CHILD_PROGRAM = """\
import json, re, sys
source, _, result = sys.argv[1:]
with open(source, "rb") as stream:
    pattern, names = json.load(stream)
compiled = re.compile(pattern)
with open(result, "w") as stream:
    json.dump([name for name in names if compiled.fullmatch(name)], stream)
"""


def compile_expression(pattern: str) -> re.Pattern[str]:
    """Return the compiled expression of a `regex:` pattern; re.error if it is invalid."""
    try:
        return re.compile(pattern.removeprefix(REGEX))
    except (RecursionError, OverflowError) as error:
        raise re.error("it is nested too deeply or repeats too often") from error


def matching_names(pattern: str, names: Collection[str]) -> list[str]:
    """Return the names that a `regex:` pattern fully matches.

    re.error if it is invalid or takes longer than `TIME_LIMIT`.
    """
    compiled = compile_expression(pattern)
    if _is_fast(compiled.pattern, names):
        return [name for name in names if compiled.fullmatch(name)]
    if compiled.pattern in _slow_expressions:
        raise re.error(TOO_SLOW)
    return _match_in_process(compiled.pattern, names)


def _is_fast(text: str, names: Collection[str]) -> bool:
    """Return whether an expression is obviously fast for these names."""
    return (
        len(_REPETITIONS.findall(text)) <= _MAX_REPETITIONS
        and _NOT_PLAIN.search(text) is None
        and max(map(len, names), default=0) <= _MAX_NAME_LENGTH
    )


def _match_in_process(text: str, names: Collection[str]) -> list[str]:
    """Return the names that an expression matches, by another process; re.error if that fails."""
    import json

    from pylink.subtools.programs import find_python
    from pylink.subtools.runner import Command, run_all

    argv = [find_python(), "-I", "-S", "-c", _CHILD_PROGRAM]
    command = Command(argv, json.dumps([text, list(names)]).encode())
    (outcome,) = run_all([command], timeout=TIME_LIMIT)
    if outcome.is_late:
        _slow_expressions.add(text)
        raise re.error(TOO_SLOW)
    if outcome.failure:
        raise re.error(f"it cannot be matched: its process {outcome.failure}")
    matches: list[str] = json.loads(outcome.data)
    return matches
