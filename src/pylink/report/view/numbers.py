"""Formats values of metrics with their units."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pylink.report.model import Scalar
from pylink.terminal.numbers import bytes_text, share_text

# The steps of each unit that scales, smallest first: the factor and the name.
SCALES: dict[str, tuple[tuple[float, str], ...]] = {
    "nsecond": ((1, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")),
    "second": ((1, "s"),),
    "byte": ((1, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB")),
    "hz": ((1, "Hz"), (1e3, "kHz"), (1e6, "MHz"), (1e9, "GHz")),
    "cycle": ((1, "cycles"), (1e3, "k cycles"), (1e6, "M cycles"), (1e9, "G cycles")),
    "count": ((1, ""), (1e3, "k"), (1e6, "M"), (1e9, "G")),
    "inst": ((1, "inst"), (1e3, "k inst"), (1e6, "M inst"), (1e9, "G inst")),
}

MISSING = "N/A"  # the text of a value that is None


def scale_value(value: float, unit: str) -> tuple[float, str]:
    """Scale a value to the largest step of its unit that keeps it at 1 or more.

    Return the scaled value and the name of the step. A value below 1, or of a unit that does not
    scale, stays as it is.
    """
    base, _, per = unit.partition("/")
    steps = SCALES.get(base)
    if steps is None or not math.isfinite(value):
        return value, unit
    factor, name = steps[0]
    for step in steps:
        if abs(value) >= step[0]:
            factor, name = step
    per = "s" if per == "second" else per
    return value / factor, f"{name}/{per}" if per else name


def format_number(value: float) -> str:
    """Return a number with commas every three digits: whole numbers in full, others rounded."""
    if not math.isfinite(value):
        return str(value)
    if value == int(value):
        return f"{int(value):,}"
    if abs(value) >= 100:
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.3g}"


def format_value(value: Scalar | None, unit: str) -> str:
    """Return a value with its unit, such as `12.3 ms`; N/A for None."""
    if value is None:
        return MISSING
    if isinstance(value, str):
        return value
    if unit == "byte" and math.isfinite(value):
        return bytes_text(value)
    amount, name = scale_value(value, unit)
    return f"{format_number(amount)}{'' if name == '%' else ' '}{name}".rstrip()


def base_text(value: Scalar | None) -> str:
    """Return a value unscaled and unrounded, for programs; empty for None."""
    if value is None:
        return ""
    return value if isinstance(value, str) else repr(value)


def spread_of(values: Sequence[float], shown_count: int, unit: str) -> str:
    """Return a sentence with the sum of the numbers that a list omits, and with quantiles of all.

    `values` are all numbers, largest first; the first `shown_count` are in the list.
    """
    omitted, total = values[shown_count:], sum(values)
    share = f" ({share_text(sum(omitted), total)})" if total else ""
    note = f"{len(omitted):,} more with {format_value(sum(omitted), unit)} together{share}; of all "

    def quantile(part: float) -> str:
        """Return the value that the share `part` of all numbers does not exceed, as text."""
        return format_value(values[min(int((1 - part) * len(values)), len(values) - 1)], unit)

    return (
        f"{note}{len(values):,}, one in ten has at most {quantile(0.1)}, half {quantile(0.5)}, "
        f"nine in ten {quantile(0.9)}"
    )
