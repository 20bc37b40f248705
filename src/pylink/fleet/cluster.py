"""Tasks on the workers of a Dask cluster.

Dask gives what a lost worker had to another. Workers read the files where they lie: they need the
same paths and the same packages.
"""

from __future__ import annotations

import itertools
import logging
import queue
import threading
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, TypeVar

from pylink import __version__
from pylink.command.packages import need
from pylink.fleet.engine import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")
R = TypeVar("R")

# Tasks that each thread of the cluster has waiting: it never idles, and results do not pile up.
AHEAD = 2

# Workers that one task may lose before it is not tried again.
LOSSES = 10

SECONDS_TO_CONNECT = 30
# Time that a client has beyond that, for which it should need none.
SECONDS_TO_GIVE_UP = 5


class Dask:
    """The workers of the scheduler at `address`. EngineError when it does not answer."""

    def __init__(self, address: str) -> None:
        self._distributed = need("distributed")
        for name in [
            one for one in logging.root.manager.loggerDict if one.startswith("distributed")
        ]:
            # What goes wrong is said once, as an error of the command.
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._client = _connected(self._distributed.Client, address)
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
            except CancelledError as error:
                raise EngineError("the connection to the scheduler was lost") from error
            except OSError as error:
                raise EngineError(f"the cluster failed: {error}") from error
            for following in waiting:
                start(following, 0)
                break
            yield result

    def close(self) -> None:
        self._client.close()


def _connected(kind: Any, address: str) -> Any:
    """A client of the scheduler at an address. EngineError when it does not answer.

    A server that is no scheduler, and says nothing, is waited for in vain, by another thread.
    """
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def connect() -> None:
        client = kind.__new__(kind)
        try:
            client.__init__(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
        except Exception as error:
            # One that did not come to be waits for a minute before it goes, and complains of it.
            client.status = "closed"
            answers.put(error)
        else:
            answers.put(client)

    threading.Thread(target=connect, daemon=True).start()
    try:
        answer = answers.get(timeout=SECONDS_TO_CONNECT + SECONDS_TO_GIVE_UP)
    except queue.Empty:
        answer = TimeoutError("what listens there is none")
    if isinstance(answer, OSError | TypeError | ValueError):
        raise EngineError(f"{address}: no scheduler answers: {answer}") from answer
    if isinstance(answer, Exception):
        raise answer
    return answer


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
