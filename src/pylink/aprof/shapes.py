"""The functions of size, and the sums of them that a fit tries.

A sum is named after its steepest function. Most are a + b f(n). From n^1.5 on there are also sums
with a part that grows like n or n log n, since a routine that compares all pairs also reads its
input. A sum of more functions would fit the few sizes of any measurement, so it would show nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

# The functions of sums, from gentle to steep.
FUNCTIONS: dict[str, Callable[[float], float]] = {
    "constant": lambda n: 1.0,
    "log n": lambda n: math.log2(n + 1),
    "n": lambda n: n,
    "n log n": lambda n: n * math.log2(n + 1),
    "n^1.5": lambda n: n**1.5,
    "n^2": lambda n: n * n,
    "n^3": lambda n: n**3,
}
NAMES = tuple(FUNCTIONS)

# Functions that grow faster than n log n: such a cost takes a larger share of a larger link.
STEEP = ("n^1.5", "n^2", "n^3")

# Functions that a forecast includes even if the measured sizes do not show them: all but n^3.
USUAL = NAMES[: NAMES.index("n^3")]

# The sums that a fit tries, from gentle to steep functions.
SUMS: tuple[tuple[str, ...], ...] = (
    ("constant",), ("log n",), ("constant", "log n"),
    ("n",), ("constant", "n"),
    ("n log n",), ("constant", "n log n"),
    ("n^1.5",), ("constant", "n^1.5"), ("n", "n^1.5"), ("constant", "n", "n^1.5"),
    ("n^2",), ("constant", "n^2"), ("n", "n^2"), ("constant", "n", "n^2"),
    ("n log n", "n^2"), ("constant", "n log n", "n^2"),
    ("n^3",), ("constant", "n^3"), ("n", "n^3"), ("constant", "n", "n^3"),
)  # fmt: skip

# Exponents of the powers that a fit tries, 0.1 to 3.2: most are between the named functions.
POWERS = tuple(round(0.05 * step, 2) for step in range(2, 65))
# An exponent that differs by no more than this from that of a named function has its name.
SAME_POWER = 0.04
NAMED_POWERS = {"n": 1.0, "n^1.5": 1.5, "n^2": 2.0, "n^3": 3.0}
# From this exponent on, a cost grows faster than n log n over the sizes of links.
STEEP_POWER = 1.25


def power_name(exponent: float) -> str:
    """Return the name of a power, or that of a named function close to it."""
    for name, power in NAMED_POWERS.items():
        if abs(exponent - power) <= SAME_POWER:
            return name
    return f"n^{exponent:g}"


def function(name: str) -> Callable[[float], float]:
    """Return the function with this name; names such as `n^1.15` are powers."""
    listed_function = FUNCTIONS.get(name)
    if listed_function is not None:
        return listed_function
    exponent = float(name.removeprefix("n^"))
    return lambda n: n**exponent


def value_at(size: float, terms: Iterable[tuple[str, float]]) -> float:
    """Return the value of a sum for a size; its terms are names of functions and their factors."""
    return sum(factor * function(name)(size) for name, factor in terms)


def is_steep(name: str) -> bool:
    """Return whether a sum with this steepest function grows faster than n log n."""
    if name in FUNCTIONS:
        return name in STEEP
    return float(name.removeprefix("n^")) >= STEEP_POWER


def is_between(name: str) -> bool:
    """Return whether this is the name of a power between the named functions."""
    return name not in FUNCTIONS
