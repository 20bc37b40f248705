"""Least squares of relative errors for sums of functions whose parts are not negative.

The fit is of cost / measured cost = 1 in each point, so that an error of one percent weighs the
same at every cost. Functions are divided by their value at the largest size, and costs by the cost
there. A point at a hundredth of the largest size has a third of its weight (`WEIGHT_EXPONENT`),
since the large sizes determine the forecast. Small costs that were rounded weigh less.

`Points.profile` measures what the data leave open. For each multiple of the cost at twice the size
(`MULTIPLES`) it computes the least sum of squared errors of all sums that forecast this multiple.
Each such sum is a mixture of pairs of functions: one that forecasts less and one that forecasts
more, weighted so that the pair forecasts the multiple. Least squares over one or two pairs are
enough, as a few points cannot distinguish more. The smaller its sum of squares, the more likely is
a multiple. So an n^2 that the data do not show, but do not exclude either, widens the interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pylink.aprof.shapes import FUNCTIONS, NAMES, POWERS, function, power_name

Array = NDArray[np.float64]

# Exponent of the size in the weight of a point.
WEIGHT_EXPONENT = 0.25

# Multiples of the cost at twice the size that are tried, in steps of 1.5 %; n^3 gives 8.
MULTIPLES: Array = np.concatenate([[1.0], np.geomspace(1.005, 9.0, 150)])
POWERS_OF_MULTIPLES: Array = np.log2(MULTIPLES)

# Keeps the equations of nearly equal functions soluble; far below any measurable cost.
RIDGE = 1e-11


@dataclass(frozen=True, slots=True)
class Sum:
    """A fitted sum: names and factors of its functions, and the weighted sum of squared errors.

    `multiple` is its value at twice the largest size over its value at the largest size.
    """

    names: tuple[str, ...]
    factors: tuple[float, ...]
    squares: float
    multiple: float

    def at(self, size: float) -> float:
        """The value of the sum for a size."""
        return sum(
            factor * function(name)(size)
            for name, factor in zip(self.names, self.factors, strict=True)
        )


class Points:
    """Sizes in ascending order and their costs, both positive, prepared for least squares.

    `resolution` is the unit to which costs were rounded, or 0.
    """

    def __init__(self, sizes: Sequence[float], costs: Sequence[float], resolution: float) -> None:
        self.sizes: Array = np.asarray(sizes, dtype=np.float64)
        self.costs: Array = np.asarray(costs, dtype=np.float64)
        size, self._top = self.sizes[-1], self.costs[-1]
        weights = (self.sizes / size) ** WEIGHT_EXPONENT
        # The mean error of rounding is a quarter. Costs below ten times that weigh less.
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

    def without(self, index: int, resolution: float) -> Points:
        """The points except one."""
        sizes, costs = (np.delete(column, index).tolist() for column in (self.sizes, self.costs))
        return Points(sizes, costs, resolution)

    def solve(self, names: Sequence[str]) -> Sum | None:
        """The best sum of these functions; None unless all factors are positive."""
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
        """The relative error of a sum at each point."""
        expected = np.array([fitted.at(size) for size in self.sizes.tolist()])
        return expected / self.costs - 1

    def power(self, *, constant: bool) -> Sum:
        """The best power of the size, of any exponent; with `constant` plus a constant part."""
        share = self.sizes / self.sizes[-1]
        columns = share[:, None] ** np.array(POWERS) * self._weights[:, None]
        square, projection = (columns**2).sum(0), columns.T @ self._ones
        flat = np.zeros(len(POWERS))
        if constant:
            ones = self._weights
            products = columns.T @ ones
            free = square * (ones @ ones) - products**2 + RIDGE
            flat = np.maximum((square * (ones @ self._ones) - products * projection) / free, 0)
            projection = projection - flat * products
        factors = projection / square
        missed = self._ones[:, None] - columns * factors - self._weights[:, None] * flat
        squares = np.where(factors > 0, (missed**2).sum(0), np.inf)
        index = int(squares.argmin())
        exponent, factor, level = POWERS[index], float(factors[index]), float(flat[index])
        name = power_name(exponent)
        scaled = factor * self._top / float(self.sizes[-1]) ** exponent
        multiple = (level + factor * 2**exponent) / (level + factor)
        residual = float(squares[index])
        if level > 0:
            return Sum(("constant", name), (level * self._top, scaled), residual, multiple)
        return Sum((name,), (scaled,), residual, multiple)

    def profile(self, functions: int) -> Array:
        """The least weighted sum of squares for each of MULTIPLES, with the first `functions`."""
        multiples = self._multiples[:functions]
        excess = multiples[None, :] - MULTIPLES[:, None]
        pairs = [(low, high) for high in range(functions) for low in range(high)]
        low, high = np.array(pairs).T
        # Weights with which the two functions of a pair forecast the multiple between them.
        of_low, of_high = excess[:, high], -excess[:, low]
        fitting = (of_low >= 0) & (of_high >= 0)
        most = int(fitting.sum(1).max())
        order = np.argsort(~fitting, axis=1, kind="stable")[:, :most]
        of_low, of_high = (
            np.take_along_axis(np.where(fitting, part, 0), order, axis=1)
            for part in (of_low, of_high)
        )
        matrix = self._matrix
        mixed = matrix[:, low[order]] * of_low[None] + matrix[:, high[order]] * of_high[None]
        return float(self._ones @ self._ones) - _best_explained(mixed, self._ones)


def _functions(sizes: Array) -> Array:
    """A row per size, a column per function."""
    rows = [[function(n) for function in FUNCTIONS.values()] for n in sizes.tolist()]
    return np.array(rows, dtype=np.float64)


def _best_explained(mixed: Array, ones: Array) -> Array:
    """The part of `ones` that the best one or two mixtures of each multiple explain.

    The axes of `mixed` are points, multiples and mixtures; some mixtures are 0.
    """
    length = np.sqrt((mixed**2).sum(0))
    mixed = mixed / np.where(length > 0, length, 1)
    single = np.einsum("ptm,p->tm", mixed, ones)
    best: Array = np.square(np.maximum(single, 0)).max(1)
    left, other = np.triu_indices(mixed.shape[2], 1)
    if not len(left):
        return best
    paired = np.einsum("ptm,ptm->tm", mixed[:, :, left], mixed[:, :, other])
    free = 1 - paired**2 + RIDGE
    first = (single[:, left] - paired * single[:, other]) / free
    second = (single[:, other] - paired * single[:, left]) / free
    gained = first * single[:, left] + second * single[:, other]
    best = np.maximum(best, np.where((first >= 0) & (second >= 0), gained, 0).max(1))
    return best
