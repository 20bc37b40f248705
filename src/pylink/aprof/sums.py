"""Least squares of relative errors for sums of functions whose parts are not negative.

At each point, the fitted cost divided by the measured cost should be 1, so that an error of one
percent weighs the same at every cost. Functions are divided by their value at the largest size, and
costs by the cost there. A point at a hundredth of the largest size has a third of the weight of the
largest (`WEIGHT_EXPONENT`), since large sizes determine the forecast. Small costs that were rounded
weigh less.

`Points.profile` measures what the data leave open. For each multiple of the cost at twice the size
(`MULTIPLES`) it computes the least sum of squared errors of all sums that forecast this multiple.
Each such sum is a mixture of pairs of functions: one that forecasts less and one that forecasts
more, weighted so that the pair forecasts the multiple. Least squares over one or two pairs are
enough, as a few points cannot distinguish more. A smaller sum of squares makes a multiple more
likely. So an n^2 that the data do not show, but do not exclude either, widens the interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pylink.aprof.shapes import FUNCTIONS, NAMES, POWERS, power_name, value_at

Array = NDArray[np.float64]

# The weight of a point grows with its size to this power.
WEIGHT_EXPONENT = 0.25

# Multiples of the cost at twice the size that are tried, in steps of 1.5 %; n^3 gives 8.
MULTIPLES: Array = np.concatenate([[1.0], np.geomspace(1.005, 9.0, 150)])
POWERS_OF_MULTIPLES: Array = np.log2(MULTIPLES)

# This is added to determinants, so that the equations of nearly equal functions stay soluble. Other
# determinants are so much larger that it does not change their results measurably.
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
        """Return the value of the sum for a size."""
        return value_at(size, zip(self.names, self.factors, strict=True))


class Points:
    """Sizes in ascending order and their costs, both positive, prepared for least squares.

    `resolution` is the unit to which costs were rounded, or 0.
    """

    def __init__(self, sizes: Sequence[float], costs: Sequence[float], resolution: float) -> None:
        self.sizes: Array = np.asarray(sizes, dtype=np.float64)
        self.costs: Array = np.asarray(costs, dtype=np.float64)
        largest_size, self._largest_cost = self.sizes[-1], self.costs[-1]
        weights = (self.sizes / largest_size) ** WEIGHT_EXPONENT
        # The mean error of rounding is a quarter of `resolution`. A cost of ten times that error
        # (2.5 * resolution) gets half of its weight, a smaller one less.
        weights *= self.costs**2 / (self.costs**2 + (2.5 * resolution) ** 2)
        # The squares of `_matrix @ factors - _ones` are weighted squares of relative errors.
        # Columns are functions, rows are points, and `_ones` has the roots of the weights.
        # `_weights` is the column of the constant 1. By function f, with n as the largest size,
        # `_scale` has f(n), and `_multiples` has f(2 n) / f(n).
        root = np.sqrt(weights * len(weights) / weights.sum())
        table = _function_table(self.sizes)
        self._scale = table[-1]
        self._matrix: Array = (
            table / self._scale * (self._largest_cost / self.costs * root)[:, None]
        )
        self._weights = self._largest_cost / self.costs * root
        self._ones = root
        self._multiples: Array = _function_table(np.array([2 * largest_size]))[0] / self._scale

    def __len__(self) -> int:
        return len(self.sizes)

    def without(self, index: int, resolution: float) -> Points:
        """Return the points except that at `index`."""
        sizes, costs = (np.delete(column, index).tolist() for column in (self.sizes, self.costs))
        return Points(sizes, costs, resolution)

    def solve(self, names: Sequence[str]) -> Sum | None:
        """Return the best sum of these functions; None unless all factors are positive."""
        columns = [NAMES.index(name) for name in names]
        factors = np.linalg.lstsq(self._matrix[:, columns], self._ones, rcond=None)[0]
        if (factors <= 0).any():
            return None
        residuals = self._ones - self._matrix[:, columns] @ factors
        return Sum(
            tuple(names),
            tuple((factors * self._largest_cost / self._scale[columns]).tolist()),
            float(residuals @ residuals),
            float(self._multiples[columns] @ factors / factors.sum()),
        )

    def starting_at(self, first_index: int, resolution: float) -> Points:
        """Return the points from an index on."""
        return Points(
            self.sizes[first_index:].tolist(), self.costs[first_index:].tolist(), resolution
        )

    def first(self, count: int, resolution: float) -> Points:
        """Return the first `count` points."""
        return Points(self.sizes[:count].tolist(), self.costs[:count].tolist(), resolution)

    def relative_errors(self, fitted: Sum) -> Array:
        """Return the relative error of a fitted sum at each point: its value / the cost - 1."""
        expected = np.array([fitted.at(size) for size in self.sizes.tolist()])
        return expected / self.costs - 1

    def power(self, *, constant: bool) -> Sum:
        """Return the best power of the size with an exponent of POWERS.

        With `constant`, the sum may have a constant part, too.
        """
        relative_sizes = self.sizes / self.sizes[-1]
        columns = relative_sizes[:, None] ** np.array(POWERS) * self._weights[:, None]
        column_squares, projection = (columns**2).sum(0), columns.T @ self._ones
        constant_factors = np.zeros(len(POWERS))
        if constant:
            ones = self._weights
            products = columns.T @ ones
            determinant = column_squares * (ones @ ones) - products**2 + RIDGE
            constant_factors = np.maximum(
                (column_squares * (ones @ self._ones) - products * projection) / determinant, 0
            )
            projection = projection - constant_factors * products
        factors = projection / column_squares
        residuals = (
            self._ones[:, None] - columns * factors - self._weights[:, None] * constant_factors
        )
        residual_squares = np.where(factors > 0, (residuals**2).sum(0), np.inf)
        best_index = int(residual_squares.argmin())
        exponent, factor, constant_factor = (
            POWERS[best_index],
            float(factors[best_index]),
            float(constant_factors[best_index]),
        )
        name = power_name(exponent)
        power_factor = factor * self._largest_cost / float(self.sizes[-1]) ** exponent
        multiple = (constant_factor + factor * 2**exponent) / (constant_factor + factor)
        best_squares = float(residual_squares[best_index])
        if constant_factor > 0:
            return Sum(
                ("constant", name),
                (constant_factor * self._largest_cost, power_factor),
                best_squares,
                multiple,
            )
        return Sum((name,), (power_factor,), best_squares, multiple)

    def profile(self, functions: int) -> Array:
        """Return, for each of MULTIPLES, the least squared error of fits that forecast it.

        Fits are sums of the first `functions` of NAMES. Their squared errors are weighted and added
        over the points.
        """
        multiples = self._multiples[:functions]
        excess = multiples[None, :] - MULTIPLES[:, None]
        pairs = [(gentle, steep) for steep in range(functions) for gentle in range(steep)]
        # By pair: the numbers of its two functions.
        gentle, steep = np.array(pairs).T
        # Weights with which the two functions of a pair forecast the multiple between them.
        gentle_weights, steep_weights = excess[:, steep], -excess[:, gentle]
        fitting = (gentle_weights >= 0) & (steep_weights >= 0)
        most_fitting = int(fitting.sum(1).max())
        # By multiple: the pairs that can forecast it, then others, whose weights become 0.
        order = np.argsort(~fitting, axis=1, kind="stable")[:, :most_fitting]
        gentle_weights, steep_weights = (
            np.take_along_axis(np.where(fitting, part, 0), order, axis=1)
            for part in (gentle_weights, steep_weights)
        )
        matrix = self._matrix
        mixed = (
            matrix[:, gentle[order]] * gentle_weights[None]
            + matrix[:, steep[order]] * steep_weights[None]
        )
        return float(self._ones @ self._ones) - _explained_squares(mixed, self._ones)


def _function_table(sizes: Array) -> Array:
    """Return the values of all functions: a row for each size, a column for each function."""
    rows = [[function(n) for function in FUNCTIONS.values()] for n in sizes.tolist()]
    return np.array(rows, dtype=np.float64)


def _explained_squares(mixtures: Array, ones: Array) -> Array:
    """Return the part of the squares of `ones` that one or two mixtures of each multiple explain.

    A mixture is two functions, weighted to forecast a multiple; unused ones are 0. The axes of
    `mixtures` are points, multiples and mixtures.
    """
    lengths = np.sqrt((mixtures**2).sum(0))
    mixtures = mixtures / np.where(lengths > 0, lengths, 1)
    projections = np.einsum("ptm,p->tm", mixtures, ones)
    explained: Array = np.square(np.maximum(projections, 0)).max(1)
    first_mixture, second_mixture = np.triu_indices(mixtures.shape[2], 1)
    if not len(first_mixture):
        return explained
    products = np.einsum(
        "ptm,ptm->tm", mixtures[:, :, first_mixture], mixtures[:, :, second_mixture]
    )
    determinant = 1 - products**2 + RIDGE
    first_factor = (
        projections[:, first_mixture] - products * projections[:, second_mixture]
    ) / determinant
    second_factor = (
        projections[:, second_mixture] - products * projections[:, first_mixture]
    ) / determinant
    gained = (
        first_factor * projections[:, first_mixture]
        + second_factor * projections[:, second_mixture]
    )
    explained = np.maximum(
        explained, np.where((first_factor >= 0) & (second_factor >= 0), gained, 0).max(1)
    )
    return explained
