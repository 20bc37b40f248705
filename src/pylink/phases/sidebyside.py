"""Runs links, or parts of one link, side by side, in threads.

Most of their work does not hold the interpreter's lock.
"""

from __future__ import annotations

from _thread import allocate_lock, start_new_thread

from pylink._native.cores import return_threads, spare_threads, take_threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    Item = TypeVar("Item")
    Result = TypeVar("Result")

# `map_in_link` estimates that its parts move one byte for this many bytes of the link's inputs. The
# bytes moved decide whether a second thread is worth its start.
INPUT_BYTES_PER_MOVED = 4


def run_side_by_side(
    work: Callable[[Item], None],
    items: Sequence[Item],
    count: int,
    raised: list[BaseException] | None = None,
) -> None:
    """Call `work` for each item, in order, from at most `count` threads; raise the first exception.

    Native functions use the remaining threads of the process, and more as these threads end.
    Exceptions are appended to `raised` at once: work that waits for other work looks there.
    """
    remaining = iter(items)
    lock = allocate_lock()
    if raised is None:
        raised = []
    helper_count = max(min(count, len(items)) - 1, 0)
    threads_taken = take_threads(helper_count) if helper_count else 0

    def run_helper(running: LockType) -> None:
        """Work in a further thread; at its end, let native functions use one thread more."""
        try:
            work_off()
        finally:
            return_thread()
            running.release()

    def return_thread() -> None:
        """Let native functions use one of the threads that were taken for helpers."""
        nonlocal threads_taken
        with lock:
            if threads_taken:
                threads_taken -= 1
                return_threads(1)

    def work_off() -> None:
        """Take items and work on them, until none is left or an exception was raised."""
        try:
            while not raised:
                with lock:
                    item = next(remaining, None)
                if item is None:
                    return
                work(item)
        except BaseException as error:
            raised.append(error)

    helpers: list[LockType] = []
    for _ in range(helper_count):
        running = _start_thread(run_helper)
        if running is None:
            return_thread()
        else:
            helpers.append(running)
    work_off()
    for running in helpers:
        running.acquire()  # once its thread has ended
    if raised:
        raise raised[0]


def _start_thread(run: Callable[[LockType], None]) -> LockType | None:
    """Start a thread, and return the lock that it releases at its end.

    None if the process may not have more threads.
    """
    # `_thread` is used, since importing `threading` takes longer than a small step.
    running = allocate_lock()
    running.acquire()
    try:
        start_new_thread(run, (running,))
    except RuntimeError:
        return None
    return running


def _map_side_by_side(
    work: Callable[[Item], Result], items: Sequence[Item], count: int
) -> list[Result]:
    """Return the result of `work` for each item, in order, computed by at most `count` threads."""
    results: dict[int, Result] = {}

    def work_off(number: int) -> None:
        results[number] = work(items[number])

    run_side_by_side(work_off, range(len(items)), count)
    return [results[number] for number in range(len(items))]


def map_in_link(
    work: Callable[[Item], Result], items: Sequence[Item], input_size: int
) -> list[Result]:
    """Return the result of `work` for each item, in order; the items are parts of one link.

    A second thread helps if one is free and the link is large enough for it. `input_size` is the
    size of the link's inputs in bytes.
    """
    return _map_side_by_side(work, items, 1 + spare_threads(1, input_size // INPUT_BYTES_PER_MOVED))
