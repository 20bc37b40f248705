"""Phase times, the table of -time, and reading it back."""

from __future__ import annotations

import errno
import io
import multiprocessing
import multiprocessing.synchronize
import os
import threading
from pathlib import Path

import pytest
from helpers.cubin_builder import one_kernel
from helpers.timing_rows import Row, read_rows

import pylink
from pylink.timing import HEADER, CsvTiming, PhaseTimer, elapsed_ms


@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [
        ((0, 0), (0, 0), "0.000000"),
        ((5, 250), (5, 251), "0.001000"),
        ((1, 999_999), (2, 0), "0.000977"),  # 1000f - 999.999f, which is not exact
        ((1, 999_999), (2, 1), "0.002014"),
        ((100, 0), (101, 234_567), "1234.567017"),
        ((0, 0), (2, 456_789), "2456.789062"),
        ((0, 0), (0, 45_678), "45.678001"),
        ((0, 900_000), (12, 100_000), "11200.000000"),
        ((0, 0), (16_777, 1), "16777000.000000"),  # past 2**24 ms no microseconds are left
        ((1_700_000_000, 7), (1_700_000_000, 5), "-0.002000"),
    ],
)
def test_elapsed_time_is_computed_in_binary32(
    start: tuple[int, int], stop: tuple[int, int], expected: str
) -> None:
    assert f"{elapsed_ms(start, stop):f}" == expected


def test_elapsed_time_agrees_with_numpy() -> None:
    numpy = pytest.importorskip("numpy")
    f32 = numpy.float32
    random = numpy.random.default_rng(7)
    for _ in range(2000):
        seconds = [int(value) for value in random.integers(0, 1 << 16, 2)]
        micros = [int(value) for value in random.integers(0, 1_000_000, 2)]
        term = f32(seconds[1] - seconds[0]) * f32(1000)
        expected = f32(term + f32(micros[1] - micros[0]) / f32(1000))
        assert elapsed_ms((seconds[0], micros[0]), (seconds[1], micros[1])) == float(expected)


def test_first_checkpoint_arms_and_later_ones_report() -> None:
    moments = iter([(1, 0), (1, 500), (1, 600), (1, 1100), (1, 1100)])
    stream = io.StringIO()
    timer = PhaseTimer(stream, clock=lambda: next(moments))
    assert timer.checkpoint("init") is None
    assert f"{timer.checkpoint('read'):f}" == "0.500000"
    timer.checkpoint("merge")
    assert stream.getvalue() == "read time: 0.500000\nmerge time: 0.500000\n"
    assert list(timer.timings) == ["read", "merge"]


def test_time_after_a_resumption_belongs_to_the_next_phase() -> None:
    moments = iter([(1, 0), (1, 100), (1, 200), (1, 500), (2, 500), (2, 500)])
    timer = PhaseTimer(clock=lambda: next(moments))
    timer.checkpoint("init")
    timer.checkpoint("read")  # from 0 to 100, and on from 200
    timer.resume()
    timer.checkpoint("merge")
    assert {tag: f"{value:f}" for tag, value in timer.timings.items()} == {
        "read": "0.100000",
        "merge": "1000.000000",
    }


def test_a_timer_without_a_stream_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    timer = PhaseTimer()
    timer.checkpoint("init")
    timer.checkpoint("read")
    assert capfd.readouterr() == ("", "")
    assert timer.timings["read"] >= 0


def add_row(table: CsvTiming, source: str = "a.ptx", elapsed: float = 1.5) -> bool:
    return table.add_row(
        "ptxas", source=source, inputs=source, output="", arch="sm_90a", elapsed=elapsed
    )


ROW = "a.ptx , ptxas , a.ptx ,  , sm_90a , nvlink , 1.5000 , ms\n"


def test_header() -> None:
    assert len(HEADER) == 99
    assert HEADER.count(" , ") == 6
    assert "arch , tool, metric , unit\n" in HEADER


def test_new_file_gets_header_and_rows(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    table = CsvTiming(file)
    assert file.read_text() == HEADER
    add_row(table)
    add_row(table, elapsed=1234.56789)
    assert file.read_text() == HEADER + ROW + ROW.replace("1.5000", "1234.5679")


@pytest.mark.parametrize("content", ["", "anything", HEADER])
def test_existing_file_is_not_looked_at(tmp_path: Path, content: str) -> None:
    file = tmp_path / "t.csv"
    file.write_text(content)
    table = CsvTiming(file)
    assert file.read_text() == content
    add_row(table)
    assert file.read_text() == content + ROW


def test_dangling_link_gets_its_target_made(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    CsvTiming(tmp_path / "link")
    assert (tmp_path / "target").read_text() == HEADER


def test_a_pipe_counts_as_existing(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    table = CsvTiming(pipe)
    received: list[str] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_text()))
    reader.start()
    add_row(table)
    reader.join()
    assert received == [ROW]


def test_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    add_row(CsvTiming("-"))
    assert capfd.readouterr().out == HEADER + ROW


def test_full_disk_costs_the_row_only() -> None:
    assert not add_row(CsvTiming("/dev/full"))


def test_a_header_without_room_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    assert CsvTiming(tmp_path / "whole.csv").complete
    monkeypatch.setattr(os, "write", full)
    assert not CsvTiming(tmp_path / "t.csv").complete
    table = tmp_path / "u.csv"
    result = pylink.link([("a", one_kernel().build())], arch="sm_80", time=table)
    assert [diagnostic.message for diagnostic in result.diagnostics] == [
        f"Could not append to the timing table '{table}'"
    ]


@pytest.mark.parametrize("name", ["", ".", "missing/t.csv"])
def test_file_that_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError):  # noqa: PT011 -- which one is the system's choice
        CsvTiming(name)
    assert os.listdir() == []


def test_no_file_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    add_row(CsvTiming(None))
    assert os.listdir() == []


def test_names_are_written_raw(tmp_path: Path) -> None:
    name = os.fsdecode(b'x, "\xff.ptx')
    file = tmp_path / "t.csv"
    table = CsvTiming(file)
    add_row(table, name)
    assert file.read_bytes().endswith(
        b'\nx, "\xff.ptx , ptxas , x, "\xff.ptx ,  , sm_90a , nvlink , 1.5000 , ms\n'
    )


def write_rows(file: str, number: int, gate: multiprocessing.synchronize.Barrier) -> None:
    gate.wait()
    table = CsvTiming(file)
    for _ in range(50):
        add_row(table, f"{number}-" + "x" * 3000)


def test_rows_of_many_processes_stay_whole(tmp_path: Path) -> None:
    file = str(tmp_path / "t.csv")
    context = multiprocessing.get_context("fork")
    gate = context.Barrier(8)
    workers = [context.Process(target=write_rows, args=(file, n, gate)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    text = Path(file).read_text()
    assert text.startswith(HEADER)
    rows = read_rows(text)
    assert sorted(row.source[0] for row in rows) == sorted("01234567" * 50)
    assert {len(row.source) for row in rows} == {3002}


def columns(row: Row) -> tuple[str, ...]:
    return (row.source, row.phase, row.inputs, row.output, row.arch, row.tool)


def test_rows_read_back() -> None:
    table = HEADER + ROW + "lto.nvvm , cicc ,  , lto.ptx , sm_90 , nvlink , 2.0000 , ms\n"
    first, second = read_rows(table)
    assert columns(first) == ("a.ptx", "ptxas", "a.ptx", "", "sm_90a", "nvlink")
    assert columns(second) == ("lto.nvvm", "cicc", "", "lto.ptx", "sm_90", "nvlink")
    assert (first.metric, second.metric) == (1.5, 2.0)
    assert len(read_rows(ROW)) == 1
    assert read_rows(HEADER) == read_rows("") == []


def test_a_comma_in_a_name_is_no_separator() -> None:
    (row,) = read_rows(ROW.replace("a.ptx", 'x, "y.ptx'))
    assert row.source == row.inputs == 'x, "y.ptx'


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (ROW.replace("a.ptx", "a , b"), "line 2: ambiguous"),
        (ROW[:-1], "line 2: cut off"),
        (ROW.replace(" , ms", ""), "line 2: not a row"),
        (ROW.replace("1.5000", "1.5"), "line 2: not a row"),
        (ROW.replace("1.5000", "fast"), "line 2: not a row"),
        (ROW + "\n", "line 3: not a row"),
        (ROW + HEADER, "line 3: not a row"),
    ],
)
def test_rows_that_cannot_be_read(row: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_rows(HEADER + row)
