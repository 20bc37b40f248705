"""Several reports of links of different sizes: how the time grows from one to the next."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from pylink.report.model import Report
from pylink.report.view.pages import DURATION

INPUT_BYTES = "file__bytes_read.sum"

# What `add_runs` enters: one instance per report, and the exponent between the smallest and the
# largest of them, 2 where twice the input takes four times as long.
RUN_BYTES = "runs__input_bytes.sum"
RUN_TIME = "runs__time_duration.sum"
RUN_EXPONENT = "runs__growth_exponent.ratio"


def size_and_time(report: Report) -> tuple[float, float] | None:
    """Bytes read and nanoseconds of the whole link; None where the report does not say."""
    sizes = [value for each in report.actions if (value := each.number(INPUT_BYTES)) is not None]
    times = [value for each in report.actions if (value := each.number(DURATION)) is not None]
    if not sizes or not times or max(sizes) <= 0 or max(times) <= 0:
        return None
    # The whole link is the longest of the actions.
    return float(max(sizes)), float(max(times))


def sizes_and_times(reports: Iterable[Report]) -> list[tuple[float, float]]:
    """Size and time of each report that has both, in the order of the reports."""
    return [point for report in reports if (point := size_and_time(report)) is not None]


def exponent(points: Sequence[tuple[float, float]]) -> float | None:
    """p of time = size ** p between the smallest and the largest; None unless sizes differ."""
    if len(points) < 2:
        return None
    (low, first), (high, last) = min(points), max(points)
    if high < 2 * low:
        return None
    return math.log(last / first) / math.log(high / low)


def add_runs(reports: Sequence[Report]) -> None:
    """Enter in the first action of the last report how the time of all of them grows."""
    points = sizes_and_times(reports)
    if len(points) < 2 or not reports[-1].actions:
        return
    action = reports[-1].actions[0]
    action.set(RUN_BYTES, None, [size for size, _ in points])
    action.set(RUN_TIME, None, [time for _, time in points])
    power = exponent(points)
    if power is not None:
        action.set(RUN_EXPONENT, power)
