"""Reports of costs whose growth is known, with any error of measurement, for tests of fits."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from pylink.aprof import Point, Report, Routine

# Costs at the largest size are a million times the unit.
TOP = 1e6
LARGEST = 1 << 20
# Sizes at which links are measured: down to an eighth three for each doubling, then halves.
SIZES = [round(LARGEST * 2 ** (-step / 3)) for step in range(9)]
SIZES += [LARGEST >> step for step in range(3, 11)]
SIZES = sorted(set(SIZES))


@dataclass(frozen=True, slots=True)
class Truth:
    """A known cost; `cost` takes sizes as parts of the largest, and is 1 at 1.

    `model` is its class of growth, None if it belongs to none.
    """

    name: str
    model: str | None
    cost: Callable[[float], float]

    @property
    def twice(self) -> float:
        """The cost of twice the largest size, divided by that of the largest size."""
        return self.cost(2.0) / self.cost(1.0)


def _log_linear(n: float) -> float:
    return n * math.log2(n * LARGEST + 1) / math.log2(LARGEST + 1)


def with_square(percent: int) -> Truth:
    """Return the sum of a linear and a quadratic cost.

    The quadratic one is `percent` of the sum at the largest size.
    """
    share = percent / 100
    return Truth(f"n + {percent}% n^2", "n^2", lambda n: (1 - share) * n + share * n * n)


# Costs of one class of growth.
GROWING = (
    Truth("constant", "constant", lambda n: 1.0),
    Truth("n", "n", lambda n: n),
    Truth("n log n", "n log n", _log_linear),
    Truth("n^1.5", "n^1.5", lambda n: n**1.5),
    Truth("n^2", "n^2", lambda n: n * n),
)
SQUARES = tuple(with_square(percent) for percent in (5, 10, 20, 35, 50, 65, 80, 95))
# Costs that change abruptly, which no growth describes.
STEPS = (
    Truth("a step at 0.7", None, lambda n: n * (2 if n > 0.7 else 1)),
    Truth("a step at 0.3", None, lambda n: n * (2 if n > 0.3 else 1)),
    Truth("a step at 0.02", None, lambda n: n * (2 if n > 0.02 else 1)),
    Truth("a jump", None, lambda n: 3.0 if n > 0.3 else 1.0),
    Truth("stairs of a quarter", None, lambda n: math.ceil(4 * n) / 4),
    Truth("stairs of a tenth", None, lambda n: math.ceil(10 * n) / 10),
)


def _bump(at: float) -> Callable[[float], float]:
    """Return a linear cost, 20 % steeper from a size on, as if tables no longer fitted a cache."""
    return lambda n: n * (1 + 0.2 / (1 + (at / n) ** 4))


# Costs that are not a sum of such classes; with a class if the larger sizes belong to it.
OUTSIDE = (
    Truth("n, from 1/4 on n^2", "n^2", lambda n: n if n < 0.25 else 4 * n * n),
    Truth("n, from 1/8 on n^2", "n^2", lambda n: n if n < 0.125 else 8 * n * n),
    Truth("n, from 1/2 on n^2", None, lambda n: n if n < 0.5 else 2 * n * n),
    Truth("n^2, from 1/4 on n", "n", lambda n: n * n if n < 0.25 else n / 4),
    Truth("n^0.7", None, lambda n: n**0.7),
    Truth("n^1.1", None, lambda n: n**1.1),
    Truth("n^1.25", None, lambda n: n**1.25),
    Truth("n^1.8", None, lambda n: n**1.8),
    Truth("a + n^1.1", None, lambda n: 0.3 + n**1.1),
    Truth("a step of 30% at 0.1", "n", lambda n: n * (1.3 if n > 0.1 else 1)),
    Truth("a step of 30% at 0.6", None, lambda n: n * (1.3 if n > 0.6 else 1)),
    Truth("a cache at 0.35", None, _bump(0.35)),
    Truth("a cache at 0.7", None, _bump(0.7)),
    Truth("a cache at 1", None, _bump(1.0)),
)


def make_report(
    truth: Truth, noise: float, seed: int, *, calls: int = 3, outliers: float = 0.0
) -> Report:
    """Return a report of one routine, with some `calls` of each size.

    Their relative errors have the standard deviation `noise`. `outliers` is the share of calls that
    take three times as long.
    """
    rng = random.Random(f"{truth.name} {noise} {seed} {calls} {outliers}")

    def call(size: int) -> int:
        """Return a cost in whole units, with a random error."""
        cost = TOP * truth.cost(size / LARGEST) * max(1 + rng.gauss(0, noise), 0.1)
        return max(round(cost * (3 if rng.random() < outliers else 1)), 1)

    points = [Point.of_calls(size, [call(size) for _ in range(calls)]) for size in SIZES]
    return Report(routines=[Routine(0, truth.name, "lib", points=points)])
