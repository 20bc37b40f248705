"""What an index of a build tree costs, beside a plain read of the same files.

    python benchmarks/bench_fleet.py [--objects N] [--folder DIR] [--disk] [--dask]

makes a tree of N objects from the cubins of the demo, half of them copies and half with code of
their own, and prints for each step what the whole process takes: seconds, processor seconds, peak
memory, and the shares of a plain read (`open`, `read`, `close` in Python) and of an index from
nothing, in processor seconds. The steps follow the life of an index: made, nothing changed, a
hundredth of the objects new (found by a walk, and given as a list), changed in place, gone. Where
no list is given each file has to be looked at: `look at each file` is that alone, in this process.
The files are in the page cache; with --disk an index is also made of files that are not.

After each step the sums of `repeats` are compared with what was planted. With --dask an index of
two workers, one of which is killed, is compared byte for byte with that of one process.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

if __name__ == "__main__":
    ROOT = Path(__file__).parents[1]
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from helpers import demo
from helpers.fleet_reference import bytes_of

import pylink
from pylink._native.census import Census
from pylink.bench.processes import Launcher
from pylink.fleet.database import Database
from pylink.fleet.index import Index
from pylink.fleet.questions import QUESTIONS
from pylink.inspect.image import Image
from pylink.packages.extras import need

FILES_OF_A_FOLDER = 200
ROUNDS = 3
# So many-th objects are new, changed or gone in a step.
PART = 100

READ = """
import os, sys
for inside in os.scandir(sys.argv[1]):
    for file in os.scandir(inside.path):
        with open(file.path, "rb") as stream:
            stream.read()
"""


@dataclass(frozen=True)
class Cost:
    """What a process took: seconds, processor seconds, peak memory in MB."""

    wall: float
    processor: float
    memory: float


class Tree:
    """A tree of objects, and what is in it: the number of each, and whether its code is its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.objects: dict[int, bool] = {}
        self._cubins = [path.read_bytes() for path in demo.cubins("sm_100")]
        self._code = [code_of(cubin) for cubin in self._cubins]

    def path(self, number: int) -> Path:
        return self.folder / str(number // FILES_OF_A_FOLDER) / f"{number}.cubin"

    def write(self, number: int, own: bytes = b"") -> int:
        """Make an object, or write it anew; its bytes."""
        kind = number % len(self._cubins)
        data = self._cubins[kind]
        if own:
            at = self._code[kind] + 16
            data = data[:at] + own + data[at + len(own) :]
        path = self.path(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "r+b" if number in self.objects else "wb") as file:
            file.write(data)
        self.objects[number] = bool(own)
        return len(data)

    def make(self, numbers: Sequence[int]) -> int:
        """Objects of these numbers, every second with code that no other has; bytes of all."""
        return sum(
            self.write(number, number.to_bytes(8, "little") if number % 2 else b"")
            for number in numbers
        )

    def change(self, numbers: Sequence[int]) -> None:
        """Other code in each, in the same file."""
        for number in numbers:
            self.write(number, (number + (1 << 40)).to_bytes(8, "little"))

    def remove(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self.path(number).unlink()
            del self.objects[number]

    def repeats(self) -> dict[str, tuple[int, int, int, int]]:
        """By family: sections, bytes, copies beyond the first of a content, and their bytes."""
        kinds = Counter((number % len(self._cubins), own) for number, own in self.objects.items())
        copies: Counter[tuple[str, bytes]] = Counter()
        alone: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        for kind, cubin in enumerate(self._cubins):
            image = Image(cubin)
            for section in image.sections:
                data = image.content(section)
                name = family(section.name)
                if not data:
                    continue
                plain, own = kinds[kind, False], kinds[kind, True]
                if section.offset == self._code[kind]:
                    alone[name] += own
                    sizes[name] += own * len(data)
                else:
                    plain += own
                if plain:
                    copies[name, data] += plain
        found = {name: (alone[name], sizes[name], 0, 0) for name in alone}
        for (name, data), count in copies.items():
            more = (count, count * len(data), count - 1, (count - 1) * len(data))
            sums = zip(found.get(name, (0, 0, 0, 0)), more, strict=True)
            found[name] = tuple(map(sum, sums))  # type: ignore[assignment]
        return found


def code_of(cubin: bytes) -> int:
    """Where the first function of a cubin begins."""
    return next(
        section.offset for section in Image(cubin).sections if section.name.startswith(".text.")
    )


def family(name: str) -> str:
    """The part of a name that is the same in every file, for the names that the demo has."""
    for start in ("", ".nv.merc", ".nv.capmerc"):
        for rest in (
            ".text",
            ".nv.info",
            ".nv.shared",
            ".nv.constant0",
            ".rela.text",
            ".rel.text",
            ".rela.nv.constant0",
            ".rel.nv.constant0",
            ".nv_debug_ptx_txt",
        ):
            if name.startswith(f"{start}{rest}.") and not name.startswith(".nv.shared.reserved."):
                return start + rest
    return name


def forget(folder: Path) -> None:
    """Have the next read of each file come from the disk."""
    os.sync()
    for inside in os.scandir(folder):
        for file in os.scandir(inside.path):
            descriptor = os.open(file.path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def least(costs: Sequence[Cost]) -> Cost:
    return Cost(
        min(cost.wall for cost in costs),
        min(cost.processor for cost in costs),
        max(cost.memory for cost in costs),
    )


def look(root: str) -> Cost:
    """What looking at each file takes, of which nothing is known."""
    wall, processor = time.perf_counter(), time.process_time()
    Census().walk(os.fsencode(root), b"", 1 << 40, 0)
    return Cost(time.perf_counter() - wall, time.process_time() - processor, 0)


@dataclass
class Life:
    """The steps in the life of an index, and what each took."""

    folder: Path
    count: int
    launcher: Launcher
    costs: dict[str, Cost] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tree = Tree(self.folder / "tree")
        self.index = self.folder / "index"

    def run(self, *words: str) -> Cost:
        """What a process of Python takes."""
        done = self.launcher.run([sys.executable, *words], self.folder)
        return Cost(done.seconds, done.cpu, done.rss / 1e6)

    def step(self, label: str, *words: str, rounds: int = ROUNDS) -> None:
        """Run `pylink dedup index`, each time from the index as it is, and check what it made."""
        time.sleep(0.3)  # younger files are read again
        before = self.folder / "before"
        self.index.rename(before)
        costs = []
        for _ in range(rounds):
            shutil.rmtree(self.index, ignore_errors=True)
            shutil.copytree(before, self.index)
            costs.append(self.run("-m", "pylink", "dedup-index", "-o", str(self.index), *words))
        shutil.rmtree(before)
        self.tell(label, least(costs))
        self.check()

    def tell(self, label: str, cost: Cost) -> None:
        self.costs[label] = cost
        read, index = self.costs.get("plain read", cost), self.costs.get("index", cost)
        shares = f"{cost.processor / read.processor:7.2f} {cost.processor / index.processor:8.3f}"
        print(
            f"{label:30} {cost.wall:8.2f} s {cost.processor:8.3f} s {cost.memory:6.0f} MB {shares}",
            flush=True,
        )

    def check(self) -> None:
        database = Database()
        database.add(Index(self.index))
        rows = database.ask(
            "SELECT family, count(*), sum(stored), count(*) - count(DISTINCT digest) "
            "FROM sections WHERE stored > 0 GROUP BY ALL"
        ).rows
        planted = self.tree.repeats()
        assert {row[0]: row[1:] for row in rows} == {
            name: sums[:3] for name, sums in planted.items()
        }
        repeats = {row[0]: row for row in database.ask(QUESTIONS["repeats"].query).rows}
        assert {name: row[-1] for name, row in repeats.items()} == {
            name: sums[3] for name, sums in planted.items() if name in repeats
        }

    def live(self, *, disk: bool = False) -> None:
        more = max(1, self.count // PART)
        size = self.tree.make(range(self.count))
        root = str(self.tree.folder)
        print(f"{self.count} objects, {size} bytes", flush=True)
        head = "wall  processor    memory   shares of read, index"
        print(f"{'':33} {head}", flush=True)
        # First what warms the cache; the two take turns.
        read, made = [], []
        for _ in range(ROUNDS):
            read.append(self.run("-c", READ, root))
            shutil.rmtree(self.index, ignore_errors=True)
            made.append(self.run("-m", "pylink", "dedup-index", "-o", str(self.index), root))
        self.tell("plain read", least(read))
        self.tell("index", least(made))
        self.check()
        self.tell("look at each file", least([look(root) for _ in range(ROUNDS)]))
        self.step("nothing changed")
        saved = self.folder / "saved"
        shutil.copytree(self.index, saved)
        new = range(self.count, self.count + more)
        self.tree.make(new)
        listed = self.folder / "list"
        listed.write_text("".join(f"{self.tree.path(number)}\n" for number in new))
        self.step("1 % new", root)
        shutil.rmtree(self.index)
        saved.rename(self.index)
        self.step("1 % new, in a list", "--changed-from", str(listed))
        self.tree.change(range(0, self.count, PART))
        self.step("1 % changed in place")
        self.tree.remove(range(1, self.count, PART))
        self.step("1 % gone")
        if disk:
            forget(self.tree.folder)
            self.tell("plain read from disk", self.run("-c", READ, root))
            forget(self.tree.folder)
            shutil.rmtree(self.index)
            self.index.mkdir()
            self.step("index from disk", root, rounds=1)

    def ask(self) -> None:
        for name in ("repeats", "contents", "templates", "targets", "files"):
            words = ("-m", "pylink", "dedup-ask", str(self.index), name)
            self.tell(f"ask {name}", self.run(*words))


def compare_with_dask(life: Life) -> None:
    """That two workers, of which one is killed, make the same files."""
    distributed: Any = need("distributed")

    root, folder = str(life.tree.folder), life.folder
    made = folder / "alone", folder / "spread"
    life.run("-m", "pylink", "dedup-index", "-o", str(made[0]), root)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0
    ) as cluster:
        words = ["-o", str(made[1]), root, "--scheduler", cluster.scheduler_address]
        begun = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-m", "pylink", "dedup-index", *words])
        while len(list(made[1].glob("fragments/0*"))) < 2 and process.poll() is None:
            time.sleep(0.01)
        next(iter(cluster.workers.values())).process.process.kill()
        status = process.wait()
    assert status == 0
    seconds = time.perf_counter() - begun
    alone, spread = map(bytes_of, made)
    assert alone == spread
    assert alone
    print(f"two workers, one killed: {seconds:.2f} s, {len(spread)} files, the same bytes")


@pytest.mark.parametrize(
    "count", [2000, pytest.param(100_000, marks=pytest.mark.bench_large)], ids=str
)
def test_bench_fleet(
    benchmark: BenchmarkFixture, launcher: Launcher, tmp_path: Path, count: int
) -> None:
    life = Life(tmp_path, count, launcher)
    benchmark.group = "index of a build tree"
    benchmark.pedantic(life.live, rounds=1)
    costs = {label: cost.processor for label, cost in life.costs.items()}
    benchmark.extra_info.update(costs)
    assert costs["nothing changed"] < costs["index"]


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--objects", type=int, default=10_000)
    options.add_argument("--folder", help="where the tree is made and removed again")
    options.add_argument("--disk", action="store_true", help="also index files that are on disk")
    options.add_argument(
        "--dask", action="store_true", help="also on a cluster that loses a worker"
    )
    found = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="pylink-fleet-", dir=found.folder))
    # As installed: compiling all modules anew is not a part of the work.
    environment = {**os.environ, "PYTHONPATH": str(Path(pylink.__file__).parents[1])}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    launcher = Launcher(environment)
    try:
        life = Life(folder, found.objects, launcher)
        life.live(disk=found.disk)
        life.ask()
        if found.dask:
            compare_with_dask(life)
    finally:
        launcher.close()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
