"""Formats numbers for people; units of bytes are decimal: 1 MB is 1,000,000 bytes."""

from __future__ import annotations

_UNITS = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


def bytes_text(size: float, *, estimated: bool = False) -> str:
    """Return a number of bytes as text, such as `31.8 MB`, with a ~ in front of an estimate."""
    prefix = "~" if estimated else ""
    for unit, name in _UNITS:
        # A number that would be rounded to 1000.0 has the next unit: 999,950 is 1.0 MB.
        if abs(size) >= unit - unit / 20000:
            return f"{prefix}{size / unit:,.1f} {name}"
    return f"{prefix}{round(size, 1):g} B"


def share_text(part: float, total: float, digits: int = 0) -> str:
    """Return a part in percent of the total, such as `39%`; "" if the total is 0.

    `digits` is the number of decimals.
    """
    return f"{part / total:.{digits}%}" if total else ""


def count_text(count: int, noun: str) -> str:
    """Return a number with a noun in singular or plural, such as `2 entries`."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count} {noun if count == 1 else plural}"
