"""A pool of threads that run tasks in order.

Importing `concurrent.futures` takes longer than measuring a small file.
"""

from __future__ import annotations

from _queue import SimpleQueue
from _thread import allocate_lock
from threading import Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Generic, TypeVar

    T = TypeVar("T")
else:
    # `typing` is not imported: that takes as long as counting 3 MB.
    T = 0
    Generic = (object,)


class Task(Generic[T]):
    """A task of the pool; `result` waits until it is done."""

    __slots__ = ("_error", "_value", "_waiting")

    def __init__(self) -> None:
        self._waiting = allocate_lock()
        self._waiting.acquire()
        self._value: T | None = None
        self._error: BaseException | None = None

    def run(self, work: Callable[[], T]) -> None:
        """Run `work`; `result` raises its exception."""
        try:
            self._value = work()
        except BaseException as error:
            self._error = error
        finally:
            self._waiting.release()

    def result(self) -> T:
        with self._waiting:
            pass
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]


class Pool:
    """A pool of `count` threads; with one, the caller does the work at once."""

    def __init__(self, count: int) -> None:
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._count = count if count > 1 else 0
        self._threads: list[Thread] = []
        self._gives_up = False

    def submit(self, work: Callable[[], T]) -> Task[T]:
        task: Task[T] = Task()
        if not self._count:
            task.run(work)
            return task
        if len(self._threads) < self._count:
            self._threads.append(Thread(target=self._take))
            self._threads[-1].start()
        self._queue.put(lambda: task.run(work))
        return task

    def close(self) -> None:
        """Stop the threads; tasks that have not started are dropped."""
        self._gives_up = True
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _take(self) -> None:
        while (work := self._queue.get()) is not None and not self._gives_up:
            work()
