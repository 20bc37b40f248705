"""A pool of threads that start tasks in the order in which they were submitted.

It replaces `concurrent.futures`, whose import takes longer than measuring a small file.
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
    """A task of the pool; `result` waits until it is done.

    The lock `_unfinished` is held until then.
    """

    __slots__ = ("_error", "_unfinished", "_value")

    def __init__(self) -> None:
        self._unfinished = allocate_lock()
        self._unfinished.acquire()
        self._value: T | None = None
        self._error: BaseException | None = None

    def run(self, function: Callable[[], T]) -> None:
        """Run `function`; `result` raises its exception."""
        try:
            self._value = function()
        except BaseException as error:
            self._error = error
        finally:
            self._unfinished.release()

    def result(self) -> T:
        """Return what the function returned, or raise its exception."""
        with self._unfinished:
            pass
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]


class Pool:
    """A pool of up to `count` threads; with a count of 1, the caller of `submit` runs the task."""

    def __init__(self, count: int) -> None:
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._most_threads = count if count > 1 else 0
        self._threads: list[Thread] = []
        self._is_closed = False

    def submit(self, function: Callable[[], T]) -> Task[T]:
        """Run `function` as soon as a thread is free; return the task at once."""
        task: Task[T] = Task()
        if not self._most_threads:
            task.run(function)
            return task
        if len(self._threads) < self._most_threads:
            self._threads.append(Thread(target=self._run_tasks))
            self._threads[-1].start()
        self._queue.put(lambda: task.run(function))
        return task

    def close(self) -> None:
        """Stop the threads; tasks that have not started are dropped.

        The `result` of a dropped task would wait forever.
        """
        self._is_closed = True
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _run_tasks(self) -> None:
        """Run tasks in a thread until None comes or the pool is closed."""
        while (task := self._queue.get()) is not None and not self._is_closed:
            task()
