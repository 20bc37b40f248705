"""Patterns, which stand for several metrics in the place of a metric's name."""

from __future__ import annotations

import re
from collections.abc import Iterable

REGEX, GROUP, BREAKDOWN = "regex:", "group:", "breakdown:"
PATTERNS = (REGEX, GROUP, BREAKDOWN)


def expression(pattern: str) -> re.Pattern[str]:
    """The expression of a `regex:` pattern; re.error when it is none."""
    return re.compile(pattern.removeprefix(REGEX))


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """The names that a `regex:` pattern matches to their end; re.error when it is none."""
    wanted = expression(pattern)
    return [name for name in names if wanted.fullmatch(name)]
