"""The threads of `pylink size`: all is done, errors come to who asks, nothing is left behind."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from pylink.size.pool import Pool, Task


@pytest.mark.parametrize("count", [1, 2, 4])
def test_results_are_those_of_what_was_given(count: int) -> None:
    before = threading.active_count()
    pool = Pool(count)
    tasks = [pool.submit(partial(pow, number, 2)) for number in range(100)]
    assert [task.result() for task in tasks] == [number * number for number in range(100)]
    assert tasks[0].result() == 0
    pool.close()
    assert threading.active_count() == before


@pytest.mark.parametrize("count", [1, 2])
def test_an_error_is_raised_where_the_result_is_asked_for(count: int) -> None:
    pool = Pool(count)
    failed, good = pool.submit(lambda: 1 // 0), pool.submit(lambda: 1)
    assert good.result() == 1
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            failed.result()
    pool.close()


def test_what_was_not_begun_when_it_closes_is_not_done() -> None:
    pool, start = Pool(2), threading.Event()
    done: list[int] = []
    for _ in range(2):
        pool.submit(start.wait)
    for number in range(10):
        pool.submit(partial(done.append, number))
    closing = threading.Thread(target=pool.close)
    closing.start()
    while not pool._is_closed:
        pass
    start.set()
    closing.join()
    assert done == []


def test_several_may_wait_for_one_task() -> None:
    task: Task[int] = Task()
    found: list[int] = []
    waiting = [threading.Thread(target=lambda: found.append(task.result())) for _ in range(3)]
    for thread in waiting:
        thread.start()
    task.run(lambda: 7)
    for thread in waiting:
        thread.join()
    assert found == [7, 7, 7]
