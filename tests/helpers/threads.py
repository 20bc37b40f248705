"""Links by a number of threads, even where their inputs are too small for more than one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pylink._native import cores

# None of them shows in a result.
THREADS = (1, 2, 3, 8)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Have links of this thread use so many."""
    worth, before = cores.set_worth(0), cores.use_threads(count)
    try:
        yield
    finally:
        cores.set_worth(worth)
        cores.use_threads(before)
