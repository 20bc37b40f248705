"""Growth of the time over several reports of links of different sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from pylink.report.model import Report
from pylink.report.view.pages import DURATION

# The metric with the bytes that a link read.
INPUT_BYTES = "file__bytes_read.sum"

# Metrics that `add_runs` adds. The first two have an instance for each report with size and time.
# The exponent is p if time grows as size ** p from the smallest to the largest link: for p = 2,
# twice the input takes four times as long.
RUN_BYTES = "runs__input_bytes.sum"
RUN_TIME = "runs__time_duration.sum"
RUN_EXPONENT = "runs__growth_exponent.ratio"


def _size_and_time(report: Report) -> tuple[float, float] | None:
    """Return bytes read and nanoseconds of the whole link; None if the report lacks them."""
    sizes = [
        value for action in report.actions if (value := action.number(INPUT_BYTES)) is not None
    ]
    times = [value for action in report.actions if (value := action.number(DURATION)) is not None]
    if not sizes or not times or max(sizes) <= 0 or max(times) <= 0:
        return None
    # The numbers of the whole link are the largest.
    return float(max(sizes)), float(max(times))


def sizes_and_times(reports: Iterable[Report]) -> list[tuple[float, float]]:
    """Return size and time of each report that has both, in the order of the reports."""
    return [point for report in reports if (point := _size_and_time(report)) is not None]


def exponent(points: Sequence[tuple[float, float]]) -> float | None:
    """Return p if time grows as size ** p from the smallest to the largest point (size, time).

    None for fewer than two points, or if the largest size is less than twice the smallest.
    """
    if len(points) < 2:
        return None
    (least_size, least_time), (most_size, most_time) = min(points), max(points)
    if most_size < 2 * least_size:
        return None
    return math.log(most_time / least_time) / math.log(most_size / least_size)


def add_runs(reports: Sequence[Report]) -> None:
    """Add the growth metrics of all reports to the first action of the last report."""
    points = sizes_and_times(reports)
    if len(points) < 2 or not reports[-1].actions:
        return
    action = reports[-1].actions[0]
    action.set(RUN_BYTES, None, [size for size, _ in points])
    action.set(RUN_TIME, None, [time for _, time in points])
    growth_exponent = exponent(points)
    if growth_exponent is not None:
        action.set(RUN_EXPONENT, growth_exponent)
