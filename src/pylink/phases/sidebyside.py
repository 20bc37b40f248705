"""Links side by side, in threads: most of their work does not hold the interpreter's lock."""

from __future__ import annotations

from _thread import allocate_lock

from pylink._native.cores import return_threads, spare_threads, take_threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from threading import Thread
    from typing import TypeVar

    Item = TypeVar("Item")
    Made = TypeVar("Made")
# Bytes of inputs for which such a part moves one.
INPUTS_FOR_ONE = 4


def run_side_by_side(work: Callable[[Item], None], items: Sequence[Item], count: int) -> None:
    """Do `work` for each item, in order, with so many threads; the first exception is raised.

    Kernels use the threads of the process that are left, more of them when some have ended.
    """
    rest = iter(items)
    lock = allocate_lock()
    raised: list[BaseException] = []
    more = max(min(count, len(items)) - 1, 0)
    threads_taken = take_threads(more) if more else 0

    def help_out() -> None:
        nonlocal threads_taken
        take()
        with lock:
            if threads_taken:
                threads_taken -= 1
                return_threads(1)

    def take() -> None:
        while not raised:
            with lock:
                item = next(rest, None)
            if item is None:
                return
            try:
                work(item)
            except BaseException as error:
                raised.append(error)

    others = _threads(help_out, more)
    for thread in others:
        thread.start()
    take()
    for thread in others:
        thread.join()
    if raised:
        raise raised[0]


def _threads(run: Callable[[], None], count: int) -> list[Thread]:
    """So many threads; a step that needs none does not import what makes them."""
    if not count:
        return []
    from threading import Thread

    return [Thread(target=run) for _ in range(count)]


def map_side_by_side(work: Callable[[Item], Made], items: Sequence[Item], count: int) -> list[Made]:
    """What `work` makes of each item, in order, by so many threads."""
    results: dict[int, Made] = {}

    def take(number: int) -> None:
        results[number] = work(items[number])

    run_side_by_side(take, range(len(items)), count)
    return [results[number] for number in range(len(items))]


def map_in_link(work: Callable[[Item], Made], items: Sequence[Item], inputs: int) -> list[Made]:
    """What `work` makes of each item, in order: parts of one link that has so many bytes of inputs.

    A second thread helps where the link may have one that nobody else uses, and is worth it.
    """
    return map_side_by_side(work, items, 1 + spare_threads(1, inputs // INPUTS_FOR_ONE))
