"""Bytes as people read them: decimal, 1 MB is 1,000,000."""

from __future__ import annotations

_UNITS = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


def bytes_text(size: int, estimated: bool = False) -> str:
    """`31.8 MB`, with a ~ in front of an estimate."""
    mark = "~" if estimated else ""
    for unit, name in _UNITS:
        # 999,950 would be printed as 1000.0 kB.
        if abs(size) >= unit - unit // 20000:
            return f"{mark}{size / unit:,.1f} {name}"
    return f"{mark}{size} B"


def share_text(size: int, whole: int) -> str:
    """Percent of a whole; an empty text where there is none."""
    return f"{100 * size / whole:.0f} %" if whole else ""
