"""Where tasks run: in this process, or on the workers of a Dask cluster.

A task is a function of this package and one argument; it only reads, so it can be done again. Dask
gives what a lost worker had to another. Results come in any order, and none depends on where it was
made. Workers read the files where they lie: they need the same paths and the same packages.
"""

from __future__ import annotations

import collections
import itertools
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pylink import __version__
from pylink.command.packages import need

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")
R = TypeVar("R")

# Tasks that each thread of the cluster has waiting: it never idles, and results do not pile up.
AHEAD = 2

# Workers that one task may lose before it is not tried again.
LOSSES = 10

SECONDS_TO_CONNECT = 30


class EngineError(Exception):
    """The cluster cannot do the work; the text says why."""


class Engine(Protocol):
    """What runs tasks."""

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """The result of each task, in any order."""
        ...

    def close(self) -> None: ...


class Local:
    """This process: one task after the other, or so many at once where more than one is to be done.

    Results come in the order of the tasks.
    """

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        waiting = iter(tasks)
        first = [*itertools.islice(waiting, self._threads)]
        if len(first) < 2:
            yield from map(function, itertools.chain(first, waiting))
            return
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 -- for much work only

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


class Dask:
    """The workers of the scheduler at `address`. EngineError when it does not answer."""

    def __init__(self, address: str) -> None:
        self._distributed = need("distributed")
        try:
            self._client = self._distributed.Client(
                address, timeout=SECONDS_TO_CONNECT, set_as_default=False
            )
        except (OSError, ValueError) as error:
            raise EngineError(f"{address}: no scheduler answers: {error}") from error
        threads = sum(self._client.nthreads().values())
        self._room = AHEAD * max(1, threads)

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        waiting = iter(tasks)
        running = self._distributed.as_completed(loop=self._client.loop)
        losses: dict[Any, tuple[T, int]] = {}

        def start(task: T, lost: int) -> None:
            future = self._client.submit(checked, versions(), function, task, pure=False)
            losses[future.key] = (task, lost)
            running.add(future)

        for task in itertools.islice(waiting, self._room):
            start(task, 0)
        for future in running:
            task, lost = losses.pop(future.key)
            try:
                result = future.result()
            except self._distributed.scheduler.KilledWorker as error:
                if lost + 1 == LOSSES:
                    raise EngineError(f"{LOSSES} workers were lost with one task") from error
                start(task, lost + 1)
                continue
            except OSError as error:
                raise EngineError(f"the cluster failed: {error}") from error
            for following in waiting:
                start(following, 0)
                break
            yield result

    def close(self) -> None:
        self._client.close()


def versions() -> tuple[str, ...]:
    """What has to be the same everywhere for results to be the same."""
    return (__version__, need("lz4").__version__, need("xxhash").VERSION)


def checked(expected: tuple[str, ...], function: Callable[[T], R], task: T) -> R:
    """Run a task; EngineError where other versions are installed."""
    if versions() != expected:
        raise EngineError(
            f"a worker has {', '.join(versions())} of pylink, lz4 and xxhash; "
            f"this process {', '.join(expected)}"
        )
    return function(task)


def engine(scheduler: str | None, threads: int = 1) -> Engine:
    """The engine that a command line asks for; `threads` is for tasks of this process."""
    return Local(threads) if scheduler is None else Dask(scheduler)
