"""Times of the fastest of several runs, which other programs disturbed least."""

from __future__ import annotations

import time
from collections.abc import Callable


def fastest(run: Callable[[], object], rounds: int = 5) -> float:
    """Seconds of the fastest run; freeing what it returns does not count."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        kept = run()
        times.append(time.perf_counter() - start)
        del kept
    return min(times)
