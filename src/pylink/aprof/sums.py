"""Least squares of relative errors for sums of functions with parts that are not negative.

What is fitted is cost / measured cost = 1 in each point, so that an error of a percent counts the
same at every cost. Functions are divided by their value at the largest size, and costs by the cost
there. A point at a hundredth of the largest size has a third of its weight (`LARGE_COUNT`): what
twice the size costs, the large sizes tell. Costs that were rounded count less where that matters.

`Points.profile` answers what the data leave open. For each multiple of the cost at twice the size
(`multiples`) it gives the least sum of squared errors of any sum of the functions that forecasts
just that. All such sums are made of pairs of functions, one that forecasts less and one that
forecasts more, mixed so that they meet it: least squares over those mixtures, of two at once, which
is as many as a few points tell apart. A multiple is as likely as its sum of squares is small; so a
square that the data do not show, but do not exclude either, widens the interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pylink.aprof.shapes import FUNCTIONS, NAMES, POWERS, function, power_name

Array = NDArray[np.float64]

# Exponent of size in the weight of a point.
LARGE_COUNT = 0.25

# Multiples of the cost that are tried for twice the size, steps of 1.5 %; n^3 gives 8.
MULTIPLES: Array = np.concatenate([[1.0], np.geomspace(1.005, 9.0, 150)])
POWERS_OF_MULTIPLES: Array = np.log2(MULTIPLES)

# What keeps the equations of nearly equal functions soluble; far below what costs can tell.
RIDGE = 1e-11


@dataclass(frozen=True, slots=True)
class Sum:
    """A fitted sum: the functions' names and factors, for costs in units; `squares` are weighted.

    `multiple` is what it forecasts for twice the largest size, over what it gives there.
    """

    names: tuple[str, ...]
    factors: tuple[float, ...]
    squares: float
    multiple: float

    def at(self, size: float) -> float:
        """The cost of a size."""
        return sum(
            factor * function(name)(size)
            for name, factor in zip(self.names, self.factors, strict=True)
        )


class Points:
    """Sizes, rising, and costs, both positive, made ready for least squares.

    `resolution` is what costs were rounded to, 0 for costs that were not.
    """

    def __init__(self, sizes: Sequence[float], costs: Sequence[float], resolution: float) -> None:
        self.sizes: Array = np.asarray(sizes, dtype=np.float64)
        self.costs: Array = np.asarray(costs, dtype=np.float64)
        size, self._top = self.sizes[-1], self.costs[-1]
        weights = (self.sizes / size) ** LARGE_COUNT
        # Rounding is off by a quarter on average; ten times that is where it begins to matter.
        weights *= self.costs**2 / (self.costs**2 + (2.5 * resolution) ** 2)
        root = np.sqrt(weights * len(weights) / weights.sum())
        table = _functions(self.sizes)
        self._scale = table[-1]
        self._matrix: Array = table / self._scale * (self._top / self.costs * root)[:, None]
        self._weights = self._top / self.costs * root
        self._ones = root
        self._multiples: Array = _functions(np.array([2 * size]))[0] / self._scale

    def __len__(self) -> int:
        return len(self.sizes)

    def without(self, at: int, resolution: float) -> Points:
        """The points but one."""
        sizes, costs = (np.delete(column, at).tolist() for column in (self.sizes, self.costs))
        return Points(sizes, costs, resolution)

    def solve(self, names: Sequence[str]) -> Sum | None:
        """The best sum of these functions; None unless each has a part in it that is positive."""
        columns = [NAMES.index(name) for name in names]
        factors = np.linalg.lstsq(self._matrix[:, columns], self._ones, rcond=None)[0]
        if (factors <= 0).any():
            return None
        missed = self._ones - self._matrix[:, columns] @ factors
        return Sum(
            tuple(names),
            tuple((factors * self._top / self._scale[columns]).tolist()),
            float(missed @ missed),
            float(self._multiples[columns] @ factors / factors.sum()),
        )

    def since(self, first: int, resolution: float) -> Points:
        """The points from number `first` on."""
        return Points(self.sizes[first:].tolist(), self.costs[first:].tolist(), resolution)

    def until(self, count: int, resolution: float) -> Points:
        """The first `count` points."""
        return Points(self.sizes[:count].tolist(), self.costs[:count].tolist(), resolution)

    def missed(self, fitted: Sum) -> Array:
        """How far a sum is off at each point, as a share of the cost."""
        expected = np.array([fitted.at(size) for size in self.sizes.tolist()])
        return expected / self.costs - 1

    def power(self, *, constant: bool) -> Sum:
        """The best power of the size, with a constant part if asked for, whatever its exponent."""
        share = self.sizes / self.sizes[-1]
        columns = share[:, None] ** np.array(POWERS) * self._weights[:, None]
        square, along = (columns**2).sum(0), columns.T @ self._ones
        flat = np.zeros(len(POWERS))
        if constant:
            ones = self._weights
            both = columns.T @ ones
            free = square * (ones @ ones) - both**2 + RIDGE
            flat = np.maximum((square * (ones @ self._ones) - both * along) / free, 0)
            along = along - flat * both
        factors = along / square
        missed = self._ones[:, None] - columns * factors - self._weights[:, None] * flat
        squares = np.where(factors > 0, (missed**2).sum(0), np.inf)
        at = int(squares.argmin())
        exponent, factor, level = POWERS[at], float(factors[at]), float(flat[at])
        name = power_name(exponent)
        scaled = factor * self._top / float(self.sizes[-1]) ** exponent
        multiple = (level + factor * 2**exponent) / (level + factor)
        residual = float(squares[at])
        if level > 0:
            return Sum(("constant", name), (level * self._top, scaled), residual, multiple)
        return Sum((name,), (scaled,), residual, multiple)

    def profile(self, functions: int) -> Array:
        """The least weighted sum of squares for each of MULTIPLES, with the first `functions`."""
        multiples = self._multiples[:functions]
        above = multiples[None, :] - MULTIPLES[:, None]
        pairs = [(low, high) for high in range(functions) for low in range(high)]
        low, high = np.array(pairs).T
        # Mixed in these parts, the two forecast the multiple between them.
        of_low, of_high = above[:, high], -above[:, low]
        fitting = (of_low >= 0) & (of_high >= 0)
        most = int(fitting.sum(1).max())
        order = np.argsort(~fitting, axis=1, kind="stable")[:, :most]
        of_low, of_high = (
            np.take_along_axis(np.where(fitting, part, 0), order, axis=1)
            for part in (of_low, of_high)
        )
        matrix = self._matrix
        mixed = matrix[:, low[order]] * of_low[None] + matrix[:, high[order]] * of_high[None]
        return float(self._ones @ self._ones) - _explained(mixed, self._ones)


def _functions(sizes: Array) -> Array:
    """A row per size, a column per function."""
    rows = [[function(n) for function in FUNCTIONS.values()] for n in sizes.tolist()]
    return np.array(rows, dtype=np.float64)


def _explained(mixed: Array, ones: Array) -> Array:
    """How much of `ones` the best one or two of the mixtures of each multiple explain.

    `mixed` has a row per point, then one per multiple, then its mixtures, some of which are 0.
    """
    length = np.sqrt((mixed**2).sum(0))
    mixed = mixed / np.where(length > 0, length, 1)
    alone = np.einsum("ptm,p->tm", mixed, ones)
    best: Array = np.square(np.maximum(alone, 0)).max(1)
    left, other = np.triu_indices(mixed.shape[2], 1)
    if not len(left):
        return best
    together = np.einsum("ptm,ptm->tm", mixed[:, :, left], mixed[:, :, other])
    free = 1 - together**2 + RIDGE
    first = (alone[:, left] - together * alone[:, other]) / free
    second = (alone[:, other] - together * alone[:, left]) / free
    gained = first * alone[:, left] + second * alone[:, other]
    best = np.maximum(best, np.where((first >= 0) & (second >= 0), gained, 0).max(1))
    return best
