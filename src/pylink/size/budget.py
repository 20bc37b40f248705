"""Limits of sizes for continuous integration: a file of lines `subject = "limit"`.

The file is TOML with strings only and without tables. `download`, `installed` and `unpacked` limit
the totals, `growth` the difference of `--diff`, in percent or bytes. `"PATTERN:TARGET"` limits the
installed bytes for a target in files whose base name, or that of their archive, matches a shell
pattern. `"PATTERN"` limits the installed bytes of such files for all targets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pylink.size.levels import Selection
from pylink.terminal.numbers import bytes_text, share_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.size.model import Sizes

# Subjects of limits in a budget file that name a column: the sum of its bytes over all files.
COLUMNS = ("download", "installed", "unpacked")
GROWTH = "growth"  # the subject that limits the difference of two builds
# A line of a budget file: a subject, bare or quoted, and its quoted limit.
_LINE = re.compile(
    r"""\s*(?:"([^"]*)"|'([^']*)'|([\w-]+))\s*=\s*(?:"([^"]*)"|'([^']*)')\s*(?:#.*)?"""
)
# A number and its unit.
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+|%)")
# Bytes of each unit, by its name in small letters.
_UNITS = {
    "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30,
}  # fmt: skip


class BadBudget(Exception):
    """An invalid budget; the text has the position and the reason."""


@dataclass(frozen=True)
class Limit:
    """A limit of `subject`; `amount` is bytes, or with `is_percent` percent of the old size.

    `subject` is a column such as `installed`, `growth`, or a pattern of file names, which may end
    with a colon and a target.
    """

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
        limit = _parse_limit(subject, next(text for text in match.groups()[3:] if text is not None))
        if limit is None:
            raise BadBudget(f"{path}:{number}: not an amount of bytes, such as 40 MB")
        if any(other.subject == subject for other in limits):
            raise BadBudget(f"{path}:{number}: '{subject}' has a limit already")
        limits.append(limit)
    if not limits:
        raise BadBudget(f"{path}: it contains no limits")
    return limits


def _parse_limit(subject: str, text: str) -> Limit | None:
    """Return the limit that `text` states, such as `40 MB`; None if it is not an amount."""
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        return None
    amount, unit = float(match[1]), match[2].lower()
    if unit == "%":
        return Limit(subject, amount, is_percent=True) if subject == GROWTH else None
    return Limit(subject, amount * _UNITS[unit]) if unit in _UNITS else None


def list_exceeded(limits: list[Limit], sizes: Sizes, old: Sizes | None) -> list[str]:
    """Return a line for each limit that is exceeded; `old` are the sizes of the old build, if any.

    BadBudget for a limit that cannot be checked.
    """
    lines = []
    for limit in limits:
        if limit.subject == GROWTH:
            line = _growth_text(limit, sizes, old)
        else:
            size = _bytes_of_subject(limit.subject, sizes)
            line = _excess_text(limit.subject, size, limit.amount)
        if line:
            lines.append(line)
    return lines


def _excess_text(subject: str, size: int, limit: float) -> str:
    """Return the line of a subject of `size` bytes above its limit `limit`, else ""."""
    if size <= limit:
        return ""
    over = bytes_text(int(size - limit))
    return (
        f"{subject}: {bytes_text(size)} ({size} bytes), limit {bytes_text(int(limit))}, {over} over"
    )


def _sum_column(sizes: Sizes, column: str) -> int:
    """Return the sum of a column; BadBudget for `download` if no file has download bytes."""
    if column == "download" and not sizes.downloads:
        raise BadBudget("'download' has a limit, but no measured file is in an archive")
    return sum(getattr(leaf, column) or 0 for leaf in sizes.leaves)


def _bytes_of_subject(subject: str, sizes: Sizes) -> int:
    """Return the bytes of a column, or of the files by `PATTERN:TARGET`; BadBudget if none fits."""
    if subject in COLUMNS:
        return _sum_column(sizes, subject)
    pattern, colon, target = subject.rpartition(":")
    if not colon:
        pattern, target = subject, ""
    file_numbers = {
        number
        for number, file in enumerate(sizes.files)
        if fnmatchcase(file.name.rpartition("/")[2], pattern)
        or (file.archive and fnmatchcase(file.archive.rpartition("/")[2], pattern))
    }
    if not file_numbers:
        raise BadBudget(f"'{subject}' has a limit, but no file has this name")
    selection = Selection(target)
    return sum(
        leaf.installed
        for leaf in sizes.leaves
        if leaf.file in file_numbers and selection.takes(leaf)
    )


def _growth_text(limit: Limit, sizes: Sizes, old: Sizes | None) -> str:
    """Return the line of two builds whose difference is above the limit, else ""."""
    if old is None:
        raise BadBudget("'growth' has a limit: use --diff OLD with it")
    column = "download" if old.downloads and sizes.downloads else "installed"
    before, after = _sum_column(old, column), _sum_column(sizes, column)
    most_growth = before * limit.amount / 100 if limit.is_percent else limit.amount
    if after - before <= most_growth:
        return ""
    growth_share = f", {share_text(after - before, before, 2)}" if before else ""
    limit_text = f"{limit.amount:g}%" if limit.is_percent else bytes_text(int(most_growth))
    return f"growth: {column} +{bytes_text(after - before)}{growth_share}, limit {limit_text}"
