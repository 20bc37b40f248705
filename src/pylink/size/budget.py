"""Limits of sizes, for continuous integration: a file of lines `what = "limit"`.

The file is TOML of strings alone, without tables. `download`, `installed` and `unpacked` limit the
whole, `growth` what `--diff` finds, in percent or bytes. `"PATTERN:TARGET"` limits the installed
bytes of files whose last name fits a pattern of the shell, `"PATTERN"` those of all targets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from pylink.size.levels import Selection
from pylink.size.numbers import bytes_text

if TYPE_CHECKING:
    from pylink.size.model import Sizes

COLUMNS = ("download", "installed", "unpacked")
GROWTH = "growth"
_LINE = re.compile(
    r"""\s*(?:"([^"]*)"|'([^']*)'|([\w-]+))\s*=\s*(?:"([^"]*)"|'([^']*)')\s*(?:#.*)?"""
)
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+|%)")
_UNITS = {
    "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30,
}  # fmt: skip


class BadBudget(Exception):
    """A budget that cannot be used; the text says where and why."""


@dataclass(frozen=True)
class Limit:
    """One line: bytes, or a share of what was there before."""

    what: str
    amount: float
    is_percent: bool = False


def read_budget(path: str) -> list[Limit]:
    """The limits in a file; BadBudget for a line that is none, OSError if it cannot be read."""
    with open(path, encoding="utf-8") as file:
        try:
            lines = file.read().splitlines()
        except UnicodeDecodeError:
            raise BadBudget(f"{path}: not a text in UTF-8") from None
    limits: list[Limit] = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise BadBudget(f'{path}:{number}: not a limit; write: what = "40 MB"')
        what = next(text for text in match.groups()[:3] if text is not None)
        limit = _limit(what, next(text for text in match.groups()[3:] if text is not None))
        if limit is None:
            raise BadBudget(f"{path}:{number}: not an amount of bytes, such as 40 MB")
        if any(other.what == what for other in limits):
            raise BadBudget(f"{path}:{number}: '{what}' has a limit already")
        limits.append(limit)
    if not limits:
        raise BadBudget(f"{path}: there is no limit in it")
    return limits


def _limit(what: str, text: str) -> Limit | None:
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        return None
    amount, unit = float(match[1]), match[2].lower()
    if unit == "%":
        return Limit(what, amount, is_percent=True) if what == GROWTH else None
    return Limit(what, amount * _UNITS[unit]) if unit in _UNITS else None


def broken(limits: list[Limit], sizes: Sizes, old: Sizes | None) -> list[str]:
    """A line for each limit that is broken; BadBudget for one that nothing can be held to."""
    lines = []
    for limit in limits:
        if limit.what == GROWTH:
            line = _growth(limit, sizes, old)
        else:
            size = _size_of(limit.what, sizes)
            line = _over(limit.what, size, limit.amount)
        if line:
            lines.append(line)
    return lines


def _over(what: str, size: int, most: float) -> str:
    if size <= most:
        return ""
    over = bytes_text(int(size - most))
    return f"{what}: {bytes_text(size)} ({size} bytes), limit {bytes_text(int(most))}, {over} over"


def _whole(sizes: Sizes, column: str) -> int:
    if column == "download" and not sizes.downloads:
        raise BadBudget("'download' has a limit, and nothing that was measured is in an archive")
    return sum(getattr(leaf, column) or 0 for leaf in sizes.leaves)


def _size_of(what: str, sizes: Sizes) -> int:
    if what in COLUMNS:
        return _whole(sizes, what)
    pattern, colon, target = what.rpartition(":")
    if not colon:
        pattern, target = what, ""
    files = {
        number
        for number, file in enumerate(sizes.files)
        if fnmatchcase(file.name.rpartition("/")[2], pattern)
        or (file.archive and fnmatchcase(file.archive.rpartition("/")[2], pattern))
    }
    if not files:
        raise BadBudget(f"'{what}' has a limit, and no file has such a name")
    selection = Selection(target)
    return sum(
        leaf.installed for leaf in sizes.leaves if leaf.file in files and selection.takes(leaf)
    )


def _growth(limit: Limit, sizes: Sizes, old: Sizes | None) -> str:
    if old is None:
        raise BadBudget("'growth' has a limit: use --diff OLD with it")
    column = "download" if old.downloads and sizes.downloads else "installed"
    before, after = _whole(old, column), _whole(sizes, column)
    most = before * limit.amount / 100 if limit.is_percent else limit.amount
    if after - before <= most:
        return ""
    share = f", {100 * (after - before) / before:.2f} %" if before else ""
    allowed = f"{limit.amount:g} %" if limit.is_percent else bytes_text(int(most))
    return f"growth: {column} +{bytes_text(after - before)}{share}, limit {allowed}"
