"""Limits of sizes for continuous integration: a file of lines `what = "limit"`.

The file is TOML with strings only and without tables. `download`, `installed` and `unpacked` limit
the totals, `growth` the difference of `--diff`, in percent or bytes. `"PATTERN:TARGET"` limits the
installed bytes of files whose base name matches a shell pattern, `"PATTERN"` those of all targets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pylink.size.levels import Selection
from pylink.size.numbers import bytes_text

TYPE_CHECKING = False
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
    """An invalid budget; the text has the position and the reason."""


@dataclass(frozen=True)
class Limit:
    """One limit of `subject`, in bytes or in percent of the earlier size."""

    subject: str
    amount: float
    is_percent: bool = False


def read_budget(path: str) -> list[Limit]:
    """Read the limits of a file; BadBudget for an invalid line, OSError if it cannot be read."""
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
        subject = next(text for text in match.groups()[:3] if text is not None)
        limit = _limit(subject, next(text for text in match.groups()[3:] if text is not None))
        if limit is None:
            raise BadBudget(f"{path}:{number}: not an amount of bytes, such as 40 MB")
        if any(other.subject == subject for other in limits):
            raise BadBudget(f"{path}:{number}: '{subject}' has a limit already")
        limits.append(limit)
    if not limits:
        raise BadBudget(f"{path}: it contains no limits")
    return limits


def _limit(subject: str, text: str) -> Limit | None:
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        return None
    amount, unit = float(match[1]), match[2].lower()
    if unit == "%":
        return Limit(subject, amount, is_percent=True) if subject == GROWTH else None
    return Limit(subject, amount * _UNITS[unit]) if unit in _UNITS else None


def broken(limits: list[Limit], sizes: Sizes, old: Sizes | None) -> list[str]:
    """A line for each limit that is exceeded; BadBudget for a limit that cannot be checked."""
    lines = []
    for limit in limits:
        if limit.subject == GROWTH:
            line = _growth(limit, sizes, old)
        else:
            size = _size_of(limit.subject, sizes)
            line = _excess_text(limit.subject, size, limit.amount)
        if line:
            lines.append(line)
    return lines


def _excess_text(subject: str, size: int, most: float) -> str:
    if size <= most:
        return ""
    over = bytes_text(int(size - most))
    return (
        f"{subject}: {bytes_text(size)} ({size} bytes), limit {bytes_text(int(most))}, {over} over"
    )


def _total(sizes: Sizes, column: str) -> int:
    if column == "download" and not sizes.downloads:
        raise BadBudget("'download' has a limit, but no measured file is in an archive")
    return sum(getattr(leaf, column) or 0 for leaf in sizes.leaves)


def _size_of(subject: str, sizes: Sizes) -> int:
    if subject in COLUMNS:
        return _total(sizes, subject)
    pattern, colon, target = subject.rpartition(":")
    if not colon:
        pattern, target = subject, ""
    files = {
        number
        for number, file in enumerate(sizes.files)
        if fnmatchcase(file.name.rpartition("/")[2], pattern)
        or (file.archive and fnmatchcase(file.archive.rpartition("/")[2], pattern))
    }
    if not files:
        raise BadBudget(f"'{subject}' has a limit, but no file has this name")
    selection = Selection(target)
    return sum(
        leaf.installed for leaf in sizes.leaves if leaf.file in files and selection.takes(leaf)
    )


def _growth(limit: Limit, sizes: Sizes, old: Sizes | None) -> str:
    if old is None:
        raise BadBudget("'growth' has a limit: use --diff OLD with it")
    column = "download" if old.downloads and sizes.downloads else "installed"
    before, after = _total(old, column), _total(sizes, column)
    most = before * limit.amount / 100 if limit.is_percent else limit.amount
    if after - before <= most:
        return ""
    share = f", {100 * (after - before) / before:.2f} %" if before else ""
    allowed = f"{limit.amount:g} %" if limit.is_percent else bytes_text(int(most))
    return f"growth: {column} +{bytes_text(after - before)}{share}, limit {allowed}"
