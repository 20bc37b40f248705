"""What indexing a build tree costs, beside a plain read of the same files.

    python benchmarks/bench_fleet.py [--objects N] [--folder DIR]

makes a tree of N objects from the cubins of the demo, half of them copies and half with code of
their own, and prints for each step seconds, processor seconds, and the ratio to reading all files
once: `open`, `read`, `close` in Python, which includes no walk. Read and index alternate, the least
of three counts: with the files in the page cache, and with none of them there, as of a build that
was made elsewhere or long ago. The answers are checked against what was planted.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

if __name__ == "__main__":
    ROOT = Path(__file__).parents[1]
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from helpers import demo

from pylink._native.census import Census
from pylink.fleet.database import Database
from pylink.fleet.engine import Local
from pylink.fleet.index import Index
from pylink.fleet.questions import QUESTIONS
from pylink.fleet.update import update
from pylink.fleet.walk import walk
from pylink.inspect.image import Image

FILES_OF_A_FOLDER = 200
ROUNDS = 3
# A hundredth of the objects is new in the last step.
NEW = 100

Times = tuple[float, float]


def make_tree(folder: Path, count: int, first: int = 0) -> int:
    """Objects `first` to `count`, every second with code that no other has; bytes of all."""
    cubins = [path.read_bytes() for path in demo.cubins("sm_100")]
    places = [code_of(cubin) for cubin in cubins]
    size = 0
    for number in range(first, count):
        kind = number % len(cubins)
        data = cubins[kind]
        if number % 2:
            at = places[kind] + 16
            data = data[:at] + number.to_bytes(8, "little") + data[at + 8 :]
        inside = folder / str(number // FILES_OF_A_FOLDER)
        inside.mkdir(parents=True, exist_ok=True)
        (inside / f"{number}.cubin").write_bytes(data)
        size += len(data)
    return size


def code_of(cubin: bytes) -> int:
    """Where the first function of a cubin begins."""
    found = (one for one in Image(cubin).sections if one.name.startswith(".text."))
    return next(found).offset


def plain_read(folder: Path) -> int:
    """All files once; their bytes."""
    size = 0
    for inside in os.scandir(folder):
        for file in os.scandir(inside.path):
            with open(file.path, "rb") as stream:
                size += len(stream.read())
    return size


def forget(folder: Path) -> None:
    """Have the next read of each file come from the disk."""
    os.sync()
    for inside in os.scandir(folder):
        for file in os.scandir(inside.path):
            descriptor = os.open(file.path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def timed(work: Callable[[], object]) -> Times:
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - processor


def least(times: list[Times]) -> Times:
    return min(one[0] for one in times), min(one[1] for one in times)


def show(label: str, times: Times, read: Times) -> None:
    ratios = f"{times[0] / read[0]:8.3f} {times[1] / read[1]:8.3f}"
    print(f"{label:34} {times[0]:9.3f} s {times[1]:9.3f} s {ratios}", flush=True)


def measure(folder: Path, count: int) -> None:
    tree = folder / "tree"
    size = make_tree(tree, count)
    time.sleep(1)
    print(f"{count} objects, {size} bytes{'':16} wall processor   ratios to reading", flush=True)
    for label in ("from disk", ""):
        reads, indexed = [], []
        for number in range(ROUNDS):
            if label:
                forget(tree)
            reads.append(timed(lambda: plain_read(tree)))
            index = Index.open_or_make(folder / f"index{label}{number}")
            if label:
                forget(tree)
            indexed.append(timed(lambda: update(index, [os.fsencode(tree)], Local())))  # noqa: B023
        read = least(reads)
        show(f"plain read {label}", read, read)
        show(f"index {label}", least(indexed), read)
    walks = [timed(lambda: walk(Census(), [os.fsencode(tree)])) for _ in reads]
    show("walk alone", least(walks), read)
    again = [timed(lambda: update(index, [], Local())) for _ in reads]
    show("index again, nothing changed", least(again), read)
    more = max(1, count // NEW)
    make_tree(tree, count + more, count)
    time.sleep(1)
    show(f"index again, {more} new", timed(lambda: update(index, [], Local())), read)
    database = Database()
    show("open the index", timed(lambda: database.add(index)), read)
    for name in ("repeats", "contents", "targets"):
        show(f"ask {name}", timed(lambda: database.ask(QUESTIONS[name].query)), read)  # noqa: B023
    show("names of functions", timed(database.add_functions), read)
    show("ask templates", timed(lambda: database.ask(QUESTIONS["templates"].query)), read)
    check(database, count + more)


def check(database: Database, count: int) -> None:
    """That the answer is what was planted: all objects, and all but their own code repeats."""
    rows = database.ask(
        "SELECT count(*), count(DISTINCT digest) FROM sections "
        "WHERE family = '.text' AND stored > 0"
    ).rows
    per_cubin = [
        [bytes(one) for one in functions(path.read_bytes())] for path in demo.cubins("sm_100")
    ]
    sections = sum(len(per_cubin[number % len(per_cubin)]) for number in range(count))
    # Each of those with own code has one; those with copies have what the demo has.
    used = {data for number in range(0, count, 1) for data in per_cubin[number % len(per_cubin)]}
    assert rows[0][0] == sections
    assert rows[0][1] == count // 2 + len(used)


def functions(cubin: bytes) -> list[bytes]:
    image = Image(cubin)
    return [image.content(one) for one in image.sections if one.name.startswith(".text.")]


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--objects", type=int, default=10_000)
    options.add_argument("--folder", help="where the tree is made and removed again")
    found = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="pylink-fleet-", dir=found.folder))
    try:
        measure(folder, found.objects)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
