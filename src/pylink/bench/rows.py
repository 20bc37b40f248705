"""Rows of the tables of results."""

from __future__ import annotations

from typing import NamedTuple

from pylink.tabular.columns import Place, Ratio, Seconds


class RunRow(NamedTuple):
    """A run: its times, and the largest number of bytes that were resident (`peak`).

    `part` is the share of all inputs that it linked, `inputs` their number. `mode` is `rested` if
    there was a pause before the run, else `warm`. `seconds` is wall time, `cpu` processor time.
    """

    contender: str
    mode: str
    part: Ratio
    inputs: int
    round: int
    seconds: Seconds
    cpu: Seconds
    peak: Place


class ContenderRow(NamedTuple):
    """The time of a contender in a mode with all inputs: the median and its interval.

    `beside` is the median ratio of its time to the reference's in the same round, with its
    interval. It is None for the reference itself, and without a common round. `certain` says that
    the interval of `median` holds the true value 19 times in 20. With fewer than six rounds it is
    False, and an interval is from the least to the largest value. `least` is the shortest time,
    `cpu` the median processor time, and `peak` the largest in all runs of the contender.
    """

    contender: str
    mode: str
    rounds: int
    median: Seconds
    low: Seconds
    high: Seconds
    least: Seconds
    cpu: Seconds
    beside: Ratio | None
    beside_low: Ratio | None
    beside_high: Ratio | None
    certain: bool
    peak: Place
