"""How many numbers spread, in a sentence: what a list of the largest leaves out."""

from __future__ import annotations

from collections.abc import Sequence

from pylink.report.view.numbers import text


def spread_of(values: Sequence[float], shown: int, unit: str) -> str:
    """The words for `values`, the largest first, of which `shown` are in the list above."""
    rest, whole = values[shown:], sum(values)
    share = f" ({100 * sum(rest) / whole:.0f}%)" if whole else ""
    words = f"{len(rest):,} more with {text(sum(rest), unit)} together{share}; of all "

    def at(part: float) -> str:
        return text(values[min(int((1 - part) * len(values)), len(values) - 1)], unit)

    return (
        f"{words}{len(values):,}, one in ten has at most {at(0.1)}, half {at(0.5)}, "
        f"nine in ten {at(0.9)}"
    )
