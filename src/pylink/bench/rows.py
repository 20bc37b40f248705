"""Rows of the tables that results have."""

from __future__ import annotations

from typing import NamedTuple

from pylink.tabular.columns import Place, Ratio, Seconds


class RunRow(NamedTuple):
    """A run: `part` is a share of the inputs, `mode` warm or rested, `peak` resident memory."""

    contender: str
    mode: str
    part: Ratio
    inputs: int
    round: int
    seconds: Seconds
    cpu: Seconds
    peak: Place


class ContenderRow(NamedTuple):
    """What a linker took with all inputs: the median, and from what to what it may be.

    `beside` is how many times as long as the reference it took, the median of rounds, with its
    interval; none for the reference itself. `certain` says that intervals hold the true value 19
    times in 20; with fewer than six rounds they are the least and the largest.
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
