"""Runs tasks in this process, or on the workers of a cluster.

A task is a function of this package and one argument; it only reads, so it can be repeated. Results
come in any order, and do not depend on the machine.
"""

from __future__ import annotations

import collections
import itertools
from typing import Protocol, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")
R = TypeVar("R")


class EngineError(Exception):
    """The cluster cannot do the work; the text says why."""


class Engine(Protocol):
    """The interface of what runs tasks: this process (`Local`), or a cluster."""

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Yield what `function` returns for each task, in any order."""
        ...

    def close(self) -> None: ...


class Local:
    """Runs tasks in this process: side by side in `threads` threads, or one by one if that is 1.

    Results come in the order of the tasks.
    """

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Yield what `function` returns for each task, in order."""
        waiting = iter(tasks)
        first = [*itertools.islice(waiting, self._threads)]
        if len(first) < 2:
            yield from map(function, itertools.chain(first, waiting))
            return
        from concurrent.futures import ThreadPoolExecutor

        pool = ThreadPoolExecutor(self._threads)
        try:
            running = collections.deque(pool.submit(function, task) for task in first)
            while running:
                result = running.popleft().result()
                running.extend(pool.submit(function, task) for task in itertools.islice(waiting, 1))
                yield result
        finally:
            pool.shutdown(cancel_futures=True)

    def close(self) -> None:
        pass
