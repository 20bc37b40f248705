"""The growth of routines as text: a line each, and then what may be said of all of them."""

from __future__ import annotations

from collections.abc import Sequence

from pylink.aprof.growth import Fit, fit_report
from pylink.aprof.model import TIME_USEC, Report
from pylink.aprof.shapes import is_between, is_steep
from pylink.diagnostics.stream import printable

# What takes less of the costliest routine is not worth a sentence.
NOTABLE = 0.02

NO_MODEL = "no model"

# The routine that is all of a link.
WHOLE = "link"


def fit_table(report: Report, fits: Sequence[Fit] | None = None) -> str:
    """The fits as text, one line a routine, and what they mean."""
    rows = fit_report(report) if fits is None else fits
    unit = "us" if report.metric == TIME_USEC else "blocks"
    walls = any(fit.wall is not None for fit in rows)
    width = max((len(printable(fit.routine)) for fit in rows), default=0)
    width = max(width, len("routine"))
    wall = f"{'wall ' + unit:>12}  " if walls else ""
    lines = [
        f"{'routine':{width}}  {'growth':12}  {'error':>6}  {'sizes':>5}  {'largest':>12}  "
        f"{'cost ' + unit:>12}  {wall}{'at twice':>8}  {'between':>13}"
    ]
    lines += [_line(fit, width, walls=walls) for fit in rows]
    return "\n".join([*lines, *conclusions(rows)]) + "\n"


def growth_name(fit: Fit) -> str:
    """What the cost grows like; powers between the classes are measured, and so not exact."""
    if fit.model is None:
        return NO_MODEL
    return f"about {fit.model}" if is_between(fit.model) else fit.model


def _line(fit: Fit, width: int, *, walls: bool) -> str:
    growth = growth_name(fit)
    error = f"{fit.error:6.1%}" if fit.model else f"{'-':>6}"
    twice = f"x {fit.twice:.1f}" if fit.model else "-"
    low, high = fit.interval
    between = f"x {low:.1f} to {high:.1f}" if high > 1 else "-"
    wall, name = "", printable(fit.routine)
    if walls:
        wall = f"{'-' if fit.wall is None else fit.wall:>12}  "
    line = (
        f"{name:{width}}  {growth:12}  {error}  {len(fit.points):5}  {fit.size:12}  "
        f"{fit.cost:12.0f}  {wall}{twice:>8}  {between:>13}"
    )
    if fit.model is None:
        line = f"{line}  {fit.growth.reason}"
    elif fit.growth.since > fit.points[0].rms:
        line = f"{line}  from {fit.growth.since:.0f} on"
    return f"{line}  <- will hurt" if fit.hurts else line


def conclusions(fits: Sequence[Fit]) -> list[str]:
    """What may be said of all routines: which grow fast, and of which nothing is known."""
    notable = [fit for fit in fits if fit.part >= NOTABLE]
    sentences = [_whole(fit) for fit in fits if fit.routine == WHOLE]
    hurting = [printable(fit.routine) for fit in fits if fit.hurts and fit.routine != WHOLE]
    if hurting:
        sentences.append(f"Grow faster than n log n: {', '.join(hurting)}.")
    unknown = [fit for fit in notable if fit.model is None]
    if unknown:
        named = ", ".join(
            f"{printable(fit.routine)} ({fit.part:.0%} of the cost)" for fit in unknown[:5]
        )
        rest = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        sentences.append(f"How these grow, the sizes do not tell: {named}{rest}.")
    fitted = [fit for fit in notable if fit.model is not None]
    if fitted and not unknown and not any(is_steep(fit.model or "") for fit in fitted):
        sentences.append(
            f"No routine that takes {NOTABLE:.0%} or more grows faster than n log n "
            "over the sizes measured."
        )
    return sentences


def _whole(fit: Fit) -> str:
    """What twice the size costs as a whole, as far as that is known."""
    low, high = fit.interval
    if fit.model is not None:
        return (
            f"At twice the size the link costs x {fit.twice:.1f}, from x {low:.1f} to x {high:.1f}."
        )
    if high > 1:
        text = f"At twice the size the link costs from x {low:.1f} to x {high:.1f}"
        return f"{text}; no model tells more."
    return f"What the link costs at twice the size, nothing tells: {fit.growth.reason}."
