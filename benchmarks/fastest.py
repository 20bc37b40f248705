"""Times of the fastest of several runs, which other programs disturbed least."""

from __future__ import annotations

import time
from collections.abc import Callable


def fastest(run: Callable[[], object], rounds: int = 5) -> float:
    """Return seconds of the fastest of several runs, without the time to free the results."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - start)
        del result
    return min(times)
