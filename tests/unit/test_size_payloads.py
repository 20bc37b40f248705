"""Payloads are read and counted by threads, many at a time: the same rows, and errors by name."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
from array import array
from pathlib import Path

import pytest
from helpers.fatbin_builder import container, entry
from helpers.sized import library, linked

from pylink._native.ledger import Ledger
from pylink._native.marks import find_marks
from pylink.size import Sizes, measure, measure_bytes, rows
from pylink.size import entries as entries_module
from pylink.size.model import CUBIN
from pylink.size.payload import Payload
from pylink.size.pool import Pool
from pylink.size.sources import FileSource, ShortRead

MARKS = (b"\x50\xed\x55\xba", b"\x7fELF\x02\x01")


@pytest.mark.parametrize("seed", range(8))
def test_marks_are_found_wherever_they_are(seed: int) -> None:
    make = random.Random(seed)
    pieces = [*MARKS, *(mark[:2] for mark in MARKS), b"\x50", b"E", bytes(61), b"\x7f\x7f"]
    for _ in range(150):
        data = b"".join(make.choices(pieces, k=make.randrange(40)))
        for marks in (MARKS, MARKS[:1], MARKS[::-1]):
            places = [
                (place, number)
                for place in range(len(data))
                for number, mark in enumerate(marks)
                if data.startswith(mark, place)
            ]
            assert find_marks(data, marks) == places


# A page that ends where the next one cannot be read.
LAST_PAGE = """
import ctypes, mmap
from pylink._native.marks import find_marks
pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + mmap.PAGESIZE), mmap.PAGESIZE, 0) == 0
print(find_marks(memoryview(pages)[: mmap.PAGESIZE], (b"ab",)))
"""


def test_no_byte_after_the_buffer_is_read() -> None:
    command = [sys.executable, "-c", LAST_PAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_marks_that_cannot_be_searched_for() -> None:
    bad: list[tuple[bytes, ...]] = [(), (b"a",), (b"ab", b""), (b"ab", b"cd", b"ef")]
    for marks in bad:
        with pytest.raises(ValueError, match="mark"):
            find_marks(b"data", marks)


def test_reading_ahead_changes_no_byte(tmp_path: Path) -> None:
    make = random.Random(5)
    data = make.randbytes(700_000)
    (tmp_path / "file").write_bytes(data)
    source = FileSource(str(tmp_path / "file"))
    at = 0
    for _ in range(2000):
        size = make.choice([0, 8, 64, 4095, 4096, 5000, 70_000])
        assert source.read(at, size) == data[at : at + size]
        at = make.choice([at + size, at + size + make.randrange(5000), make.randrange(len(data))])
        at %= len(data) + 9
    source.close()


def mixed_files(folder: Path) -> list[Path]:
    """Libraries with cubins in each mode, some of them in several files, and PTX."""
    paths = []
    for number in range(9):
        shared = linked(80, "shared", code=bytes(range(256)) * 40)
        own = linked(90, f"own{number}", "both", code=bytes([number, *range(200)]) * 30)
        entries = [
            entry(cubin, sm, mode=mode)
            for cubin, sm in ((shared, 80), (own, 90))
            for mode in ("none", "lz4", "zstd")
        ]
        path = folder / f"lib{number}.so"
        path.write_bytes(library([(".nv_fatbin", container(*entries) * 3)]))
        paths.append(path)
    return paths


def all_rows(sizes: Sizes) -> list[object]:
    return [
        (row.keys, row.count, row.unpacked, row.installed)
        for row in rows(sizes, ("target", "part", "function"))
    ]


def zstd_sizes(sizes: Sizes) -> list[tuple[str, int | None]]:
    return [(leaf.codec, leaf.as_zstd) for leaf in sizes.leaves if leaf.kind == CUBIN]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_rows_do_not_depend_on_how_payloads_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    """By the threads, from the file; or before, from memory. Entries wait in one batch or more."""
    monkeypatch.setattr(entries_module, "count_cores", lambda: threads)
    paths = mixed_files(tmp_path)
    together = measure([str(tmp_path)], recompress=True)
    zstd = zstd_sizes(together)
    assert len(zstd) == 9 * 18
    assert all((size is None) == (codec == "zstd") for codec, size in zstd)
    for most in (1, 1 << 30):
        monkeypatch.setattr(entries_module, "_BATCH_WORK", most)
        again = measure([str(tmp_path)], recompress=True)
        assert all_rows(again) == all_rows(together)
        assert zstd_sizes(again) == zstd
    for path in paths:
        alone = measure([str(path)])
        assert all_rows(alone) == all_rows(measure_bytes(str(path), path.read_bytes()))


def test_a_file_that_becomes_shorter_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when its entries are read only while the next file is."""
    first, second, *_ = mixed_files(tmp_path)
    submit = Pool.submit

    def truncate_first(pool: Pool, work: object) -> object:
        os.truncate(first, 200)
        return submit(pool, work)  # type: ignore[arg-type]

    monkeypatch.setattr(Pool, "submit", truncate_first)
    for cores in (1, 2):
        monkeypatch.setattr(entries_module, "count_cores", lambda cores=cores: cores)
        mixed_files(tmp_path)
        with pytest.raises(OSError, match="shorter") as raised:
            measure([str(first), str(second)])
        assert raised.value.filename == str(first)


def test_a_file_is_closed_when_nobody_reads_it(tmp_path: Path) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    mixed_files(tmp_path)
    measure([str(tmp_path)])
    before = descriptors()
    measure([str(tmp_path)])
    assert descriptors() == before


def test_payloads_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(bytes(100))
    ledger, size = Ledger(), 64
    with FileHandle(tmp_path / "short") as file, pytest.raises(EOFError):
        ledger.measure([Payload(None, 50, size, size, 0, 2, 0, size, 0, False)], file)
    with pytest.raises(OSError, match="cannot be read") as raised:
        ledger.measure([Payload(None, 0, size, size, 0, 2, 0, size, 0, False)], -1)
    assert raised.value.errno == errno.EBADF
    for row in (
        Payload(b"12", 0, 3, 3, 0, 1, 0, 3, 0, False),
        Payload(b"", 0, 0, 1 << 32, 0, 1, 0, 0, 0, False),
    ):
        with pytest.raises(ValueError, match=r"longer than its bytes|4 GiB"):
            ledger.measure([row])
    # What was good stays good: nothing of the others was counted.
    data = linked(80, "good")
    rows_ = ledger.measure([Payload(data, 0, len(data), len(data), 0, 2, 0, len(data), 0, False)])
    assert rows_[0] is not None
    sums = ledger.sums(
        bytes(4), array("i", range(len(ledger.functions()))).tobytes(), by_part=False
    )
    assert sum(row.unpacked for row in sums) == len(data)


class FileHandle:
    """An open descriptor."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY)

    def __enter__(self) -> int:
        return self._file

    def __exit__(self, *_: object) -> None:
        os.close(self._file)


def test_the_error_of_a_short_file_names_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(9000))
    source = FileSource(str(path))
    os.truncate(path, 10)
    with pytest.raises(ShortRead) as raised:
        source.read(0, 64)
    assert raised.value.filename == str(path)
    source.close()


@pytest.mark.parametrize("mode", ["none", "lz4", "zstd"])
def test_equal_entries_are_counted_each(mode: str) -> None:
    """They are decompressed once. What functions repeat is seen as before."""
    code, other = linked(80, "a", "b", code=bytes(range(250)) * 9), linked(80, "c")

    def by_function(*entries: bytes) -> dict[str, tuple[int, int, int]]:
        data = library([(".nv_fatbin", container(*entries))])
        sizes = measure_bytes("lib.so", data)
        assert not sizes.unreadable
        return {
            row.keys[0]: (row.count, row.unpacked, row.installed)
            for row in rows(sizes, ("function",))
            if row.keys[0] in {"a", "b", "c"}
        }

    once = by_function(entry(code, 80, mode=mode))
    times = by_function(*[entry(code, 80, mode=mode)] * 2, entry(other, 80), entry(code, 80))
    for name, (count, unpacked, installed) in once.items():
        assert times[name][:2] == (count, 3 * unpacked)
        stored = by_function(entry(code, 80))[name][2]
        assert times[name][2] == 2 * installed + stored
    sizes = measure_bytes("lib.so", container(*[entry(code, 80, mode=mode)] * 3))
    groups = array("i", [0] * 3).tobytes()
    names = sizes.ledger.functions()
    copies = [(names[copy.function], copy.entry) for copy in sizes.ledger.repeats(groups)]
    assert sorted(copies) == [(b"a", 1), (b"a", 2), (b"b", 1), (b"b", 2)]


def test_equal_entries_that_are_damaged_are_named_each() -> None:
    packed = bytearray(entry(linked(80, "a"), 80, mode="zstd"))
    packed[64:68] = bytes(4)  # the frame has no mark
    sizes = measure_bytes("lib.so", container(*[bytes(packed)] * 3))
    assert [name for name, _ in sizes.unreadable] == [
        f"lib.so: container 0, entry {number}" for number in range(3)
    ]
