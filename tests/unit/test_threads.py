"""How many threads a link uses; that their number shows nowhere is in test_determinism.py."""

from __future__ import annotations

import os
import random
import re
import resource
import subprocess
import sys
import threading
from _thread import allocate_lock, get_ident, start_new_thread
from collections.abc import Callable, Iterator
from pathlib import Path
from time import sleep

import pytest
from helpers.cubin_builder import Cubin
from helpers.threads import threads

import pylink
from pylink._native import cores
from pylink.diagnostics.errors import LinkError
from pylink.phases.sidebyside import map_in_link, run_side_by_side

COUNTED = Path(__file__).parents[1] / "helpers" / "counted_threads.c"


def test_the_total_is_what_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYLINK_THREADS", "5")
    assert cores.count_cores() == 5
    for text in ("", "0", "none", "-3", "1.5"):
        monkeypatch.setenv("PYLINK_THREADS", text)
        assert 1 <= cores.count_cores() <= len(os.sched_getaffinity(0))


def test_one_function_counts_the_processors() -> None:
    """Others would not know the quota of a control group, or PYLINK_THREADS."""
    package = Path(pylink.__file__).parent
    askers = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search("sched_getaffinity|cpu_count", path.read_text())
    }
    # The first compares two processes, the second describes the machine.
    assert askers == {"serve/request.py", "bench/machine.py"}


def test_the_total_follows_the_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYLINK_THREADS", raising=False)
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        assert cores.count_cores() == 1
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.parametrize(
    ("groups", "quotas", "count"),
    [
        ("0::/\n", {"cpu.max": "max 100000\n"}, 0),
        ("0::/\n", {"cpu.max": "250000 100000\n"}, 3),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "200000 100000\n"}, 2),
        ("0::/a/b\n", {"a/b/cpu.max": "50000 100000\n", "a/cpu.max": "200000 100000\n"}, 1),
        ("1:cpu:/x\n0::/gone\n", {}, 0),
        (
            "4:cpu,cpuacct:/x\n0::/\n",
            {"cpu/cpu.cfs_quota_us": "150000\n", "cpu/cpu.cfs_period_us": "100000\n"},
            2,
        ),
        ("", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 0),
        ("0::/\n", {"cpu.max": "0 0\n"}, 0),
        ("0::/\n", {"cpu.max": "nonsense"}, 0),
        ("0::/" + "x" * 5000, {}, 0),
    ],
)
def test_quotas_of_control_groups(
    groups: str, quotas: dict[str, str], count: int, tmp_path: Path
) -> None:
    for name, text in quotas.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    file = tmp_path / "groups"
    file.write_text(groups)
    assert cores.read_quota(os.fsencode(file), os.fsencode(tmp_path)) == count
    assert cores.read_quota(os.fsencode(tmp_path / "none"), os.fsencode(tmp_path / "none")) == 0


def test_links_side_by_side_share_the_total(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYLINK_THREADS", "4")
    seen: list[int] = []
    lock = threading.Lock()

    def look(_: int) -> None:
        with lock:
            left = cores.take_threads(10)
            seen.append(left)
            cores.return_threads(left)

    run_side_by_side(look, [0], 1)
    assert seen == [3]
    seen.clear()
    run_side_by_side(look, range(40), 3)
    assert min(seen) >= 1  # the fourth thread is nobody's
    assert max(seen) <= 3
    assert cores.take_threads(10) == 3  # all are back
    cores.return_threads(3)


def test_steps_side_by_side_return_what_they_took(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the caller has a number of its own, which the threads that end do not have."""
    monkeypatch.setenv("PYLINK_THREADS", "4")
    with threads(8):
        run_side_by_side(lambda _: None, range(9), 3)
    assert cores.take_threads(10) == 3
    cores.return_threads(3)


def test_steps_side_by_side_do_with_the_threads_that_start(monkeypatch: pytest.MonkeyPatch) -> None:
    thread_numbers: list[int] = []
    done: list[int] = []

    def start(run: Callable[..., None], arguments: tuple[object, ...]) -> int:
        thread_numbers.append(len(thread_numbers))
        if len(thread_numbers) > 1:
            raise RuntimeError("can't start new thread")
        return start_new_thread(run, arguments)

    monkeypatch.setenv("PYLINK_THREADS", "4")
    monkeypatch.setattr("pylink.phases.sidebyside.start_new_thread", start)
    run_side_by_side(done.append, range(9), 4)
    assert (thread_numbers, sorted(done)) == ([0, 1, 2], [*range(9)])
    assert cores.take_threads(10) == 3
    cores.return_threads(3)


def test_an_interrupt_between_two_steps_ends_those_that_wait() -> None:
    """A step that waits for one that never begins sees what was raised."""
    main_thread = get_ident()
    raised: list[BaseException] = []
    has_begun = allocate_lock()
    has_begun.acquire()

    class Steps(list[int]):
        def __iter__(self) -> Iterator[int]:
            yield 0
            if get_ident() != main_thread:
                yield 1
            raise KeyboardInterrupt

    def work(step: int) -> None:
        if get_ident() == main_thread:
            assert has_begun.acquire(timeout=10)
            return
        has_begun.release()
        while not raised:
            sleep(0.01)

    with threads(2), pytest.raises(KeyboardInterrupt):
        run_side_by_side(work, Steps([0, 1]), 2, raised)


@pytest.mark.parametrize("count", [1, 2, 8])
def test_parts_of_a_link_have_a_second_thread_if_the_link_may(count: int) -> None:
    seen: dict[int, int] = {}
    both = threading.Barrier(min(count, 2), timeout=60)

    def look(item: int) -> int:
        seen[item] = threading.get_ident()
        if item < 2:  # each thread has one of them
            both.wait()
        return -item

    with threads(count):
        assert map_in_link(look, range(6), 1) == [0, -1, -2, -3, -4, -5]
    assert len(set(seen.values())) == min(count, 2)


def test_parts_of_a_small_link_have_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYLINK_THREADS", "4")
    seen = map_in_link(lambda _: threading.get_ident(), range(6), 15 << 20)
    assert set(seen) == {threading.get_ident()}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Inputs of 40 MiB, which are worth more threads than the tests ask for."""
    folder = tmp_path_factory.mktemp("large")
    rng = random.Random(7)
    for number in range(20):
        cubin = Cubin()
        cubin.function(f"kernel{number}", kernel=True, code=rng.randbytes(2 << 20))
        (folder / f"{number}.cubin").write_bytes(cubin.build())
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def started(
    tmp_path_factory: pytest.TempPathFactory, large: list[Path]
) -> Callable[..., tuple[int, bytes]]:
    """How many threads a command line starts, with options and an environment; and its output."""
    folder = tmp_path_factory.mktemp("counted")
    library = folder / "counted.so"
    build = ["cc", "-shared", "-fPIC", str(COUNTED), "-o", str(library), "-ldl"]
    subprocess.run(build, check=True)

    def run(
        *options: str, inputs: int = 20, space: int | None = None, **environment: str
    ) -> tuple[int, bytes]:
        def limit_space() -> None:
            if space is not None:
                resource.setrlimit(resource.RLIMIT_AS, (space, space))

        words = [sys.executable, "-m", "pylink", "-arch=sm_80", *map(str, large[:inputs])]
        done = subprocess.run(
            [*words, *options, "-o", "out"],
            cwd=folder,
            env={**os.environ, **environment, "LD_PRELOAD": str(library)},
            capture_output=True,
            text=True,
            check=True,
            preexec_fn=limit_space,
        )
        return done.stderr.count("a thread is started"), (folder / "out").read_bytes()

    return run


def test_as_many_threads_as_asked_for_work(started: Callable[..., tuple[int, bytes]]) -> None:
    none, first = started("--threads=1")
    assert none == 0
    counts = [0]
    for number in (2, 3, 8):
        by_option, image = started(f"--threads={number}")
        assert image == first
        by_environment, image = started(PYLINK_THREADS=str(number))
        assert image == first
        assert by_option == by_environment
        assert by_option % (number - 1) == 0  # whole rows of helpers
        counts.append(by_option)
    assert counts == sorted(set(counts))


def test_a_thread_has_to_be_worth_it(started: Callable[..., tuple[int, bytes]]) -> None:
    assert started("--threads=8", inputs=1)[0] == 0
    few, _ = started("--threads=8", inputs=4)
    many, _ = started("--threads=8")
    assert 0 < few < many


def test_threads_need_address_space(started: Callable[..., tuple[int, bytes]]) -> None:
    """Each takes 72 MB of it, which a link under a tight limit needs for itself."""
    many, first = started("--threads=3", space=4 << 30)
    assert many > 0
    none, image = started("--threads=3", space=400 << 20)
    assert (none, image) == (0, first)


def test_a_negative_number_is_refused(large: list[Path]) -> None:
    with pytest.raises(LinkError, match="--threads"):
        pylink.link(large[:1], arch="sm_80", threads=-1)


def test_a_link_ends_with_the_number_before(large: list[Path]) -> None:
    pylink.link(large[:2], arch="sm_80", threads=3)
    assert cores.use_threads(0) == 0
