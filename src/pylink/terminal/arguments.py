"""Numbers on command lines: types of arguments for argparse, which prints why one is refused."""

from __future__ import annotations

from argparse import ArgumentTypeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Number = TypeVar("Number", int, float)

# The largest number that an option takes. System calls accept this number of seconds or MiB.
MOST = 10**9


def natural_number(text: str) -> int:
    """Return a whole number of 0 or more."""
    return _read(text, int, 0, "whole number")


def positive_number(text: str) -> int:
    """Return a whole number of 1 or more."""
    return _read(text, int, 1, "whole number")


def seconds(text: str) -> float:
    """Return a number of seconds."""
    return _read(text, float, 0, "number of seconds")


def _read(text: str, parse: Callable[[str], Number], least: int, noun: str) -> Number:
    """Return the number in a text; ArgumentTypeError, with `noun`, unless it is `least` to MOST."""
    try:
        number = parse(text)
        if least <= number <= MOST:
            return number
    except ValueError:
        pass
    raise ArgumentTypeError(f"'{text}' is not a {noun} from {least} to {MOST:,}")
