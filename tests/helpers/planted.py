"""Costs whose growth is known, measured as badly as one likes: what fits have to find."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from pylink.aprof import Point, Report, Routine

# Costs at the largest size are a million times the unit.
TOP = 1e6
LARGEST = 1 << 20
SIZES = 11


@dataclass(frozen=True, slots=True)
class Truth:
    """A cost that is 1 at size 1, the largest; `model` is its class, None where no class has it."""

    name: str
    model: str | None
    cost: Callable[[float], float]

    @property
    def twice(self) -> float:
        """What twice the largest size costs, over what that costs."""
        return self.cost(2.0)


def _log_linear(n: float) -> float:
    return n * math.log2(n * LARGEST + 1) / math.log2(LARGEST + 1)


def with_square(percent: int) -> Truth:
    """A line and a square, which has so many percent of the cost at the largest size."""
    share = percent / 100
    return Truth(f"n + {percent}% n^2", "n^2", lambda n: (1 - share) * n + share * n * n)


GROWING = (
    Truth("constant", "constant", lambda n: 1.0),
    Truth("n", "n", lambda n: n),
    Truth("n log n", "n log n", _log_linear),
    Truth("n^1.5", "n^1.5", lambda n: n**1.5),
    Truth("n^2", "n^2", lambda n: n * n),
)
SQUARES = tuple(with_square(percent) for percent in (5, 10, 20, 35, 50, 65, 80, 95))
STEPS = (
    Truth("a step at 0.7", None, lambda n: n * (2 if n > 0.7 else 1)),
    Truth("a step at 0.3", None, lambda n: n * (2 if n > 0.3 else 1)),
    Truth("a step at 0.02", None, lambda n: n * (2 if n > 0.02 else 1)),
    Truth("a jump", None, lambda n: 3.0 if n > 0.3 else 1.0),
    Truth("stairs of a quarter", None, lambda n: math.ceil(4 * n) / 4),
    Truth("stairs of a tenth", None, lambda n: math.ceil(10 * n) / 10),
)


def measured(
    truth: Truth, noise: float, seed: int, *, calls: int = 3, outliers: float = 0.0
) -> Report:
    """A report of one routine; each call is off by a normal share, or takes three times as long."""
    rng = random.Random(f"{truth.name} {noise} {seed} {calls} {outliers}")

    def call(size: int) -> int:
        cost = TOP * truth.cost(size / LARGEST) * max(1 + rng.gauss(0, noise), 0.1)
        return max(round(cost * (3 if rng.random() < outliers else 1)), 1)

    sizes = [LARGEST >> k for k in range(SIZES)]
    points = [Point.of_calls(size, [call(size) for _ in range(calls)]) for size in sizes[::-1]]
    return Report(routines=[Routine(0, truth.name, "lib", points=points)])
