"""Runs tasks on the workers of a Dask cluster.

Dask moves the tasks of a lost worker to another. Workers read the files in place: they need the
same paths and the same packages. A cluster may grow and shrink with its work, and start without
workers.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import queue
import time
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from pylink import __version__
from pylink.fleet.engine import EngineError
from pylink.packages.extras import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")
R = TypeVar("R")

# Tasks per thread of the cluster that it has at a time, running or waiting: enough to keep it busy,
# without piling up results.
WAITING_PER_THREAD = 2

# Number of KilledWorker errors after which a task is given up. Dask raises one if more workers were
# lost with the task than Dask's setting allowed-failures permits.
MOST_LOSSES = 10

SECONDS_TO_CONNECT = 30

# Seconds without workers after which the work fails, unless Dask's setting SETTING says otherwise.
SECONDS_WITHOUT_WORKERS = 300.0
SETTING = "distributed.scheduler.no-workers-timeout"
# Seconds without a result after which the number of workers is checked.
SECONDS_TO_LOOK = 5.0


class Dask:
    """The workers of the scheduler at `address`; EngineError if it does not answer."""

    def __init__(self, address: str) -> None:
        self._distributed = need("distributed")
        for name in [
            name for name in logging.root.manager.loggerDict if name.startswith("distributed")
        ]:
            # Dask logs no errors: the command reports them, once.
            logging.getLogger(name).setLevel(logging.CRITICAL)
        # Some releases raise NoWorkerError if a scheduler stops waiting for workers.
        scheduler = self._distributed.scheduler
        self._failures = (OSError, getattr(scheduler, "NoWorkerError", OSError))
        try:
            self._check_address(address)
            self._client = self._distributed.Client(
                address, timeout=SECONDS_TO_CONNECT, set_as_default=False
            )
        except (OSError, TypeError, ValueError) as error:
            raise EngineError(f"{address}: no scheduler answers: {error}") from error

    def _check_address(self, address: str) -> None:
        """Check that a scheduler listens at the address.

        A client would wait for an answer without limit, and take a minute to close without one.
        """

        async def ask() -> Any:
            security = self._distributed.Security().get_connection_args("client")
            async with self._distributed.rpc(address, connection_args=security) as server:
                return (await server.identity())["type"]

        try:
            answer = asyncio.run(asyncio.wait_for(ask(), SECONDS_TO_CONNECT))
        except asyncio.TimeoutError as error:  # a different class before Python 3.11
            raise TimeoutError("no scheduler listens there") from error
        if answer != "Scheduler":
            raise ValueError(f"it is a {answer}")

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Yield the result of each task, in any order; EngineError if the cluster fails."""
        waiting = iter(tasks)
        running: dict[Any, tuple[T, int]] = {}  # by future: task, and its KilledWorker errors
        finished: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def start(task: T, loss_count: int) -> None:
            """Start a task on the cluster, after `loss_count` KilledWorker errors."""
            future = self._client.submit(_run_checked, versions(), function, task, pure=False)
            running[future] = (task, loss_count)
            future.add_done_callback(finished.put)

        while True:
            room = WAITING_PER_THREAD * max(1, self._count_threads()) - len(running)
            for task in itertools.islice(waiting, max(0, room)):
                start(task, 0)
            if not running:
                return
            future = self._wait_for_task(finished)
            task, loss_count = running.pop(future)
            try:
                result = future.result()
            except self._distributed.scheduler.KilledWorker as error:
                if loss_count + 1 == MOST_LOSSES:
                    raise EngineError(f"{MOST_LOSSES} workers were lost with one task") from error
                start(task, loss_count + 1)
            except CancelledError as error:
                raise EngineError("the connection to the scheduler was lost") from error
            except self._failures as error:
                raise EngineError(f"the cluster failed: {error}") from error
            else:
                yield result

    def _wait_for_task(self, finished: queue.SimpleQueue[Any]) -> Any:
        """Wait for a task that has ended, and return its future.

        EngineError if there are no workers for too long.
        """
        limit_text = need("dask.config").get(SETTING, None)
        limit = (
            need("dask.utils").parse_timedelta(limit_text)
            if limit_text
            else SECONDS_WITHOUT_WORKERS
        )
        begun = time.monotonic()
        while True:
            try:
                return finished.get(timeout=min(SECONDS_TO_LOOK, limit))
            except queue.Empty:
                if self._count_threads():
                    begun = time.monotonic()
                elif time.monotonic() - begun >= limit:
                    raise EngineError(
                        f"the scheduler has had no workers for {limit:g} s: start some; if they "
                        f"take longer to start, set {SETTING} of Dask"
                    ) from None

    def _count_threads(self) -> int:
        """Return the number of threads that the cluster has now."""
        try:
            return sum(self._client.nthreads().values())
        except (OSError, AttributeError) as error:  # a client that gave up has no scheduler
            raise EngineError("the connection to the scheduler was lost") from error

    def close(self) -> None:
        self._client.close()


def versions() -> tuple[str, ...]:
    """Return the versions of pylink, lz4 and xxhash, which must be equal on all machines."""
    return (__version__, need("lz4").__version__, need("xxhash").VERSION)


def _run_checked(expected: tuple[str, ...], function: Callable[[T], R], task: T) -> R:
    """Run a task; EngineError if other versions than `expected` are installed here."""
    if versions() != expected:
        raise EngineError(
            f"a worker has {', '.join(versions())} of pylink, lz4 and xxhash; "
            f"this process {', '.join(expected)}"
        )
    return function(task)
