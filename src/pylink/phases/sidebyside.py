"""Links side by side, in threads: most of their work does not hold the interpreter's lock."""

from __future__ import annotations

import os
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    Item = TypeVar("Item")
    Made = TypeVar("Made")

THREADS = "PYLINK_THREADS"


def core_count() -> int:
    """How many threads there are unless a caller says: PYLINK_THREADS, or one for each core."""
    text = os.environ.get(THREADS, "")
    count = int(text) if text.isascii() and text.isdigit() else 0
    return count or len(os.sched_getaffinity(0))


def run_side_by_side(work: Callable[[Item], None], items: Sequence[Item], count: int) -> None:
    """Do `work` for each item, in order, with so many threads; the first exception is raised."""
    rest = iter(items)
    lock = threading.Lock()
    raised: list[BaseException] = []

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

    others = [threading.Thread(target=take) for _ in range(min(count, len(items)) - 1)]
    for thread in others:
        thread.start()
    take()
    for thread in others:
        thread.join()
    if raised:
        raise raised[0]


def map_side_by_side(work: Callable[[Item], Made], items: Sequence[Item], count: int) -> list[Made]:
    """What `work` makes of each item, in order, by so many threads."""
    made: dict[int, Made] = {}

    def take(number: int) -> None:
        made[number] = work(items[number])

    run_side_by_side(take, range(len(items)), count)
    return [made[number] for number in range(len(items))]
