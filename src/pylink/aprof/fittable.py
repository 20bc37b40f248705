"""Shows the growth of routines as text: a line for each, then sentences about all of them."""

from __future__ import annotations

from collections.abc import Sequence

from pylink.aprof.growth import Fit, fit_report
from pylink.aprof.model import TIME_USEC, Report
from pylink.aprof.shapes import is_between, is_steep
from pylink.diagnostics.stream import printable

# Sentences do not mention a routine whose cost is a smaller share of the costliest routine's,
# except LINK_ROUTINE and one that hurts (see `Fit`).
LEAST_NOTABLE_PART = 0.02

# Limit of the routines without a model that a sentence names.
MOST_NAMED = 5

NO_MODEL = "no model"

# Name of the routine that stands for the whole link.
LINK_ROUTINE = "link"


def fit_table(report: Report, fits: Sequence[Fit] | None = None) -> str:
    """Return the fits as text: a head, a line for each routine, then the conclusions."""
    rows = fit_report(report) if fits is None else fits
    unit = "us" if report.metric == TIME_USEC else "blocks"
    has_walls = any(fit.wall is not None for fit in rows)
    width = max((len(printable(fit.routine)) for fit in rows), default=0)
    width = max(width, len("routine"))
    wall_head = f"{'wall ' + unit:>12}  " if has_walls else ""
    lines = [
        f"{'routine':{width}}  {'growth':12}  {'error':>6}  {'sizes':>5}  {'largest':>12}  "
        f"{'cost ' + unit:>12}  {wall_head}{'at twice':>8}  {'between':>13}"
    ]
    lines += [_routine_line(fit, width, has_walls=has_walls) for fit in rows]
    return "\n".join([*lines, *_conclusions(rows)]) + "\n"


def _growth_name(fit: Fit) -> str:
    """Return the name of the growth.

    "about" precedes a power that lies between two functions with names, such as n and n log n.
    """
    if fit.model is None:
        return NO_MODEL
    return f"about {fit.model}" if is_between(fit.model) else fit.model


def _routine_line(fit: Fit, width: int, *, has_walls: bool) -> str:
    """Return the line of a routine; `width` is that of the first column."""
    growth = _growth_name(fit)
    error = f"{fit.error:6.1%}" if fit.model else f"{'-':>6}"
    twice = f"x {fit.twice:.1f}" if fit.model else "-"
    low, high = fit.interval
    between = f"x {low:.1f} to {high:.1f}" if high > 1 else "-"
    wall, name = "", printable(fit.routine)
    if has_walls:
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


def _conclusions(fits: Sequence[Fit]) -> list[str]:
    """Return sentences about the link, the routines that grow fast and those without a model."""
    notable = [fit for fit in fits if fit.part >= LEAST_NOTABLE_PART]
    sentences = [_forecast_link(fit) for fit in fits if fit.routine == LINK_ROUTINE]
    hurting = [printable(fit.routine) for fit in fits if fit.hurts and fit.routine != LINK_ROUTINE]
    if hurting:
        sentences.append(f"Grow faster than n log n: {', '.join(hurting)}.")
    unknown = [fit for fit in notable if fit.model is None]
    if unknown:
        names = ", ".join(
            f"{printable(fit.routine)} ({fit.part:.0%} of the cost)" for fit in unknown[:MOST_NAMED]
        )
        more = f" and {len(unknown) - MOST_NAMED} more" if len(unknown) > MOST_NAMED else ""
        sentences.append(f"The growth of these does not show at these sizes: {names}{more}.")
    fitted = [fit for fit in notable if fit.model is not None]
    if fitted and not unknown and not any(is_steep(fit.model or "") for fit in fitted):
        sentences.append(
            f"No routine that takes {LEAST_NOTABLE_PART:.0%} or more grows faster than n log n "
            "over the sizes measured."
        )
    return sentences


def _forecast_link(fit: Fit) -> str:
    """Return a sentence with the forecast of the whole link at twice the size."""
    low, high = fit.interval
    if fit.model is not None:
        return (
            f"At twice the size the link costs x {fit.twice:.1f}, from x {low:.1f} to x {high:.1f}."
        )
    if high > 1:
        text = f"At twice the size the link costs from x {low:.1f} to x {high:.1f}"
        return f"{text}; there is no model."
    return f"The cost of the link at twice the size is unknown: {fit.growth.reason}."
