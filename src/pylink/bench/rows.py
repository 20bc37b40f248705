"""Rows of the tables of results."""

from __future__ import annotations

from typing import NamedTuple

from pylink.tabular.columns import Place, Ratio, Seconds


class RunRow(NamedTuple):
    """A run: `part` is a share of the inputs, `mode` warm or rested, `peak` resident bytes."""

    contender: str
    mode: str
    part: Ratio
    inputs: int
    round: int
    seconds: Seconds
    cpu: Seconds
    peak: Place


class ContenderRow(NamedTuple):
    """The time of a contender with all inputs: the median and its interval.

    `beside` is the median ratio to the reference, with its interval; None for the reference itself.
    `certain` says that intervals hold the true value 19 times in 20; with fewer than six rounds
    they are the least and the largest value.
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
