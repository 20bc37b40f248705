"""How callers follow a link: progress, giving up, log records, results in other processes."""

from __future__ import annotations

import asyncio
import copy
import logging
import multiprocessing
import pickle
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest
from helpers import demo, fatbin_builder
from helpers.cubin_builder import one_kernel

import pylink
from pylink import LinkCancelled, LinkError, LinkJob
from pylink.api.following import PHASES
from pylink.observer import Steps

ARCH = "sm_90a"


@pytest.fixture(scope="module")
def cubins() -> list[str]:
    return [str(path) for path in demo.cubins(ARCH)]


class After:
    """Says that a link is no longer wanted once it was asked so many times."""

    def __init__(self, times: int) -> None:
        self.left = times

    def is_set(self) -> bool:
        self.left -= 1
        return self.left < 0


def test_progress_tells_of_each_phase_in_order(cubins: list[str]) -> None:
    told: list[tuple[str, int, int]] = []
    followed = pylink.link(cubins, arch=ARCH, progress=lambda *what: told.append(what))
    assert told == [(tag, number, len(PHASES)) for number, tag in enumerate(PHASES, 1)]
    assert followed.image == pylink.link(cubins, arch=ARCH).image
    assert {"init", *followed.timings} == set(PHASES)


def test_progress_changes_no_path(cubins: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are mapped, and the output is made in its file, as without anybody who follows."""
    seen: list[tuple[bool, object]] = []

    def spy(*arguments: object) -> Steps:
        made = Steps(*arguments)  # type: ignore[arg-type]  # as they were
        seen.append((bool(made.observers), made.on_phase_end))
        return made

    monkeypatch.setattr("pylink.pipeline.Steps", spy)
    pylink.link(cubins, arch=ARCH)
    pylink.link(cubins, arch=ARCH, progress=lambda *_: None)
    assert [observers for observers, _ in seen] == [False, False]
    assert seen[0][1] is None
    assert seen[1][1] is not None


@pytest.mark.parametrize("times", range(len(PHASES)))
def test_a_link_that_is_given_up_writes_nothing(
    cubins: list[str], tmp_path: Path, times: int
) -> None:
    output, listed = tmp_path / "out.cubin", tmp_path / "register.h"
    output.write_bytes(b"old")
    with pytest.raises(LinkCancelled, match="the link was cancelled"):
        pylink.link(
            cubins,
            arch=ARCH,
            output=output,
            register_link_binaries=listed,
            cancel=After(times),
        )
    assert output.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["out.cubin"]


def test_a_link_that_stays_wanted_is_done(cubins: list[str], tmp_path: Path) -> None:
    output = tmp_path / "out.cubin"
    made = pylink.link(cubins, arch=ARCH, output=output, cancel=After(len(PHASES)))
    assert output.read_bytes() == made.image


def test_what_a_function_for_progress_raises_ends_the_link(
    cubins: list[str], tmp_path: Path
) -> None:
    def refuse(phase: str, done: int, total: int) -> None:
        if phase == "layout":
            raise RuntimeError(f"{done} of {total}")

    with pytest.raises(RuntimeError, match="4 of 7"):
        pylink.link(cubins, arch=ARCH, output=tmp_path / "o", progress=refuse)
    assert not any(tmp_path.iterdir())


def test_wrong_arguments_are_named(cubins: list[str]) -> None:
    with pytest.raises(TypeError, match="progress is a function or True, not 3"):
        pylink.link(cubins, arch=ARCH, progress=3)  # type: ignore[arg-type]  # that is the mistake
    with pytest.raises(TypeError, match="cancel has a method is_set"):
        pylink.link(cubins, arch=ARCH, cancel=True)  # type: ignore[arg-type]  # that is the mistake
    with pytest.raises(TypeError, match=r"'progres'.*'progress'"):
        pylink.link(cubins, arch=ARCH, progres=True)  # type: ignore[call-arg]  # that is the mistake


def test_many_links_count_those_that_ended(cubins: list[str], tmp_path: Path) -> None:
    jobs = [LinkJob(cubins, arch=ARCH) for _ in range(4)]
    told: list[tuple[str, int, int]] = []
    pylink.link_many(jobs, threads=2, progress=lambda *what: told.append(what))
    assert told == [("link", number, 4) for number in range(1, 5)]
    jobs = [LinkJob(cubins, arch=ARCH, output=tmp_path / str(number)) for number in range(4)]
    with pytest.raises(LinkCancelled):
        pylink.link_many(jobs, threads=1, cancel=After(12))
    assert [path.name for path in tmp_path.iterdir()] == ["0"]


def test_a_coroutine_waits_for_a_link(cubins: list[str]) -> None:
    made = asyncio.run(pylink.alink(iter(cubins), arch=ARCH))
    assert made.image == pylink.link(cubins, arch=ARCH).image
    with pytest.raises(LinkError):
        asyncio.run(pylink.alink(["nowhere.cubin"], arch=ARCH))
    with pytest.raises(LinkCancelled):
        asyncio.run(pylink.alink(cubins, arch=ARCH, cancel=After(2)))


def test_a_cancelled_task_writes_nothing(cubins: list[str], tmp_path: Path) -> None:
    began, goes_on = threading.Event(), threading.Event()

    def wait(phase: str, done: int, total: int) -> None:
        began.set()
        assert goes_on.wait(60)

    async def run() -> None:
        link = pylink.alink(cubins, arch=ARCH, output=tmp_path / "out.cubin", progress=wait)
        task = asyncio.create_task(link)
        await asyncio.to_thread(began.wait, 60)
        task.cancel()
        asyncio.get_running_loop().call_later(0.05, goes_on.set)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert not any(tmp_path.iterdir())


def test_a_task_that_is_cancelled_twice_waits_for_its_thread(
    cubins: list[str], tmp_path: Path
) -> None:
    """The second time does not leave the link behind: it has ended when the task has."""
    began, goes_on = threading.Event(), threading.Event()
    output = tmp_path / "out.cubin"

    def wait(phase: str, done: int, total: int) -> None:
        began.set()
        assert goes_on.wait(60)

    async def run() -> None:
        task = asyncio.create_task(pylink.alink(cubins, arch=ARCH, output=output, progress=wait))
        await asyncio.to_thread(began.wait, 60)
        task.cancel()
        await asyncio.sleep(0.01)
        assert not task.done()
        task.cancel()
        await asyncio.sleep(0.01)
        assert not task.done()
        goes_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert not any(tmp_path.iterdir())


LARGE = 9 << 20  # more than an output that is made in memory


@pytest.mark.parametrize("times", range(3, len(PHASES)))
def test_a_large_output_that_is_given_up_leaves_nothing(tmp_path: Path, times: int) -> None:
    """Such an output is made in a file of its own, window by window."""
    large = one_kernel("kernel")
    large.function("large", code=bytes(LARGE), kernel=True)
    output = tmp_path / "out.cubin"
    output.write_bytes(b"old")
    inputs = [("large.cubin", large.build())]
    with pytest.raises(LinkCancelled):
        pylink.link(inputs, arch="sm_80", output=output, cancel=After(times))
    assert output.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["out.cubin"]


def test_a_cancelled_link_leaves_a_table_of_times_with_its_header(
    cubins: list[str], tmp_path: Path
) -> None:
    """The table is there from the start, as after a link that failed: rows may come later."""
    failed, given_up = tmp_path / "failed.csv", tmp_path / "cancelled.csv"
    with pytest.raises(LinkError):
        pylink.link(["nowhere.cubin"], arch=ARCH, time=failed)
    with pytest.raises(LinkCancelled):
        pylink.link(cubins, arch=ARCH, time=given_up, cancel=After(2))
    assert given_up.read_text() == failed.read_text()
    assert given_up.read_text().startswith("source file name")


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, bytes]]:
    """The demo's files with code for two architectures in each."""
    return [
        (
            first.name,
            fatbin_builder.container(
                fatbin_builder.entry(first.read_bytes(), 90, flags=0x100011),
                fatbin_builder.entry(second.read_bytes(), 100, flags=0x100011),
            ),
        )
        for first, second in zip(demo.cubins("sm_90a"), demo.cubins("sm_100"), strict=True)
    ]


def test_progress_and_cancel_of_a_device_link_step(
    pairs: list[tuple[str, bytes]], tmp_path: Path
) -> None:
    archs, output = ["sm_90", "sm_100"], tmp_path / "out.fatbin"
    told: list[tuple[str, int, int]] = []
    made = pylink.dlink(
        pairs, archs=archs, form="fatbin", cudadevrt=False, progress=lambda *what: told.append(what)
    )
    assert told == [("link", 1, 2), ("link", 2, 2)]
    for times in (0, 1, 5, 2 * len(PHASES)):
        with pytest.raises(LinkCancelled):
            pylink.dlink(
                pairs,
                archs=archs,
                form="fatbin",
                cudadevrt=False,
                threads=1,
                output=output,
                cancel=After(times),
            )
        assert not any(tmp_path.iterdir())
    same = pylink.dlink(
        pairs, archs=archs, form="fatbin", cudadevrt=False, output=output, cancel=After(1000)
    )
    assert output.read_bytes() == same.data == made.data


@pytest.fixture
def logger(caplog: pytest.LogCaptureFixture) -> Iterator[logging.Logger]:
    """The logger, with a handler of its own."""
    made = logging.getLogger("pylink")
    made.propagate = False
    made.addHandler(caplog.handler)
    yield made
    made.removeHandler(caplog.handler)
    made.propagate = True


def test_a_logger_without_a_handler_is_left_alone(
    caplog: pytest.LogCaptureFixture, cubins: list[str]
) -> None:
    caplog.set_level(logging.DEBUG, logger="pylink")
    logging.getLogger("pylink").critical("heard by the root")
    assert len(caplog.records) == 1
    caplog.clear()
    with pytest.raises(LinkError):
        pylink.link([cubins[0], "nowhere.cubin"], arch=ARCH)
    assert not caplog.records


@pytest.mark.usefixtures("logger")
def test_log_records_of_hostile_names_can_be_written(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(LinkError):
        pylink.link(["no\x1b\udc80where.cubin"], arch=ARCH)
    (record,) = caplog.records
    assert record.getMessage() == "Could not open input file 'no\\x1b\\x80where.cubin'"


@pytest.mark.usefixtures("logger")
def test_diagnostics_are_log_records(caplog: pytest.LogCaptureFixture, cubins: list[str]) -> None:
    with caplog.at_level(logging.DEBUG, logger="pylink"), pytest.raises(LinkError) as raised:
        pylink.link([cubins[0], "nowhere.cubin"], arch=ARCH)
    (record,) = caplog.records
    (diagnostic,) = raised.value.diagnostics
    assert (record.name, record.levelno) == ("pylink", logging.CRITICAL)
    assert record.getMessage() == diagnostic.message
    assert vars(record)["diagnostic"] is diagnostic
    caplog.clear()
    with caplog.at_level(logging.DEBUG, logger="pylink"):
        made = pylink.link(cubins, arch=ARCH, pass_remarks="dce", warning_as_error=True)
    assert [vars(record)["diagnostic"] for record in caplog.records] == list(made.diagnostics)
    assert {record.levelno for record in caplog.records} == {logging.INFO}
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="pylink"):
        pylink.link(cubins, arch=ARCH, pass_remarks="dce", diag_warning="pass-remark")
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_results_travel_with_their_image_out_of_band(cubins: list[str]) -> None:
    made = pylink.link(cubins, arch=ARCH, profile="")
    buffers: list[pickle.PickleBuffer] = []
    text = pickle.dumps(made, 5, buffer_callback=buffers.append)
    assert made.image not in text
    (buffer,) = buffers
    assert buffer.raw().nbytes == made.size
    again = pickle.loads(text, buffers=buffers)
    for other in (again, pickle.loads(pickle.dumps(made, 2)), copy.deepcopy(made), copy.copy(made)):
        assert (other.image, other.arch, other.timings) == (made.image, ARCH, made.timings)
        assert list(other.inputs) == list(made.inputs)
        assert list(other.sections) == list(made.sections)
        assert repr(other.profile) == repr(made.profile)
        assert repr(other) == repr(made)


def test_errors_and_what_a_link_takes_travel(cubins: list[str]) -> None:
    with pytest.raises(LinkError) as raised:
        pylink.link([*cubins, "nowhere.cubin"], arch=ARCH)
    for error in (pickle.loads(pickle.dumps(raised.value, 5)), copy.deepcopy(raised.value)):
        assert str(error) == str(raised.value)
        assert [record.number for record in error.diagnostics] == [120]
    cancelled = pickle.loads(pickle.dumps(LinkCancelled()))
    assert str(cancelled) == "the link was cancelled"
    options = pickle.loads(pickle.dumps(pylink.LinkOptions(verbose=True)))
    assert options == pylink.LinkOptions(verbose=True)
    job = pickle.loads(pickle.dumps(LinkJob(cubins, options, arch=ARCH)))
    (made,) = pylink.link_many([job])
    assert isinstance(made, pylink.LinkResult)
    assert made.image == pylink.link(cubins, arch=ARCH, verbose=True).image


def link_files(names: list[str]) -> pylink.LinkResult:
    return pylink.link(names, arch=ARCH)


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_links_in_pools_of_processes(cubins: list[str], method: str) -> None:
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        made = list(pool.map(link_files, [cubins, cubins[::-1], cubins]))
        failed = pool.submit(link_files, ["nowhere.cubin"])
        assert isinstance(failed.exception(), LinkError)
    assert [result.image for result in made] == [
        link_files(names).image for names in (cubins, cubins[::-1], cubins)
    ]


def test_links_in_pools_of_threads(cubins: list[str]) -> None:
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(link_files, [cubins] * 12))
    assert {result.image for result in made} == {link_files(cubins).image}
