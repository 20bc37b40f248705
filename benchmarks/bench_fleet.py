"""The cost of an index of a build tree, beside a plain read of the same files.

    python benchmarks/bench_fleet.py [--objects N] [--folder DIR] [--disk] [--dask]

makes a tree of N objects from the cubins of the demo, half of them copies and half with code of
their own. For each step it prints the cost of the whole process: seconds, processor seconds and
peak memory, and its processor seconds divided by those of a plain read (`open`, `read`, `close` in
Python) and of a new index. The steps follow the life of an index: it is made, nothing changes, a
hundredth of the objects is new (found by a walk, then named in a list), changed in place, removed.
Without a list, pylink must look at each file: `look at each file` is the cost of that, in this
process. The files are in the page cache; with --disk an index is also made of files that are not.

After each step the sums of `repeats` are compared with those of the tree. With --dask an index by
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
# One of this number of objects is new, changed or removed in a step.
STEP_SHARE = 100

# A program that reads all files of a tree.
READ = """
import os, sys
for inside in os.scandir(sys.argv[1]):
    for file in os.scandir(inside.path):
        with open(file.path, "rb") as stream:
            stream.read()
"""


@dataclass(frozen=True)
class Cost:
    """The cost of a process: seconds, processor seconds, peak memory in MB."""

    wall: float
    processor: float
    memory: float


class Tree:
    """A tree of objects; `objects` says, by number of an object, whether it has code of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.objects: dict[int, bool] = {}
        self._cubins = [path.read_bytes() for path in demo.cubins("sm_100")]
        self._code = [code_offset(cubin) for cubin in self._cubins]

    def path(self, number: int) -> Path:
        return self.folder / str(number // FILES_OF_A_FOLDER) / f"{number}.cubin"

    def write(self, number: int, code: bytes = b"") -> int:
        """Write an object, with these bytes in its code if any are given; return its size."""
        kind = number % len(self._cubins)
        data = self._cubins[kind]
        if code:
            at = self._code[kind] + 16
            data = data[:at] + code + data[at + len(code) :]
        path = self.path(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "r+b" if number in self.objects else "wb") as file:
            file.write(data)
        self.objects[number] = bool(code)
        return len(data)

    def make(self, numbers: Sequence[int]) -> int:
        """Write objects, every second with code that no other has; return the size of all."""
        return sum(
            self.write(number, number.to_bytes(8, "little") if number % 2 else b"")
            for number in numbers
        )

    def change(self, numbers: Sequence[int]) -> None:
        """Write other code into each object, in the same file."""
        for number in numbers:
            self.write(number, (number + (1 << 40)).to_bytes(8, "little"))

    def remove(self, numbers: Sequence[int]) -> None:
        """Delete the files with these numbers."""
        for number in numbers:
            self.path(number).unlink()
            del self.objects[number]

    def repeats(self) -> dict[str, tuple[int, int, int, int]]:
        """Return sums by family of sections, such as `.text`.

        These are number and bytes of all sections, then of those that repeat another.
        """
        kinds = Counter(
            (number % len(self._cubins), has_own_code)
            for number, has_own_code in self.objects.items()
        )
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
                plain_count, own_count = kinds[kind, False], kinds[kind, True]
                if section.offset == self._code[kind]:
                    alone[name] += own_count
                    sizes[name] += own_count * len(data)
                else:
                    plain_count += own_count
                if plain_count:
                    copies[name, data] += plain_count
        sums_by_family = {name: (alone[name], sizes[name], 0, 0) for name in alone}
        for (name, data), count in copies.items():
            more = (count, count * len(data), count - 1, (count - 1) * len(data))
            sums = zip(sums_by_family.get(name, (0, 0, 0, 0)), more, strict=True)
            sums_by_family[name] = tuple(map(sum, sums))  # type: ignore[assignment]
        return sums_by_family


def code_offset(cubin: bytes) -> int:
    """Return the offset in a cubin of the code of its first function."""
    return next(
        section.offset for section in Image(cubin).sections if section.name.startswith(".text.")
    )


def family(name: str) -> str:
    """Return the part of a section's name before the function's, for the names in the demo."""
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


def drop_from_cache(folder: Path) -> None:
    """Drop the files of a tree from the page cache, so that they are read from the disk."""
    os.sync()
    for inside in os.scandir(folder):
        for file in os.scandir(inside.path):
            descriptor = os.open(file.path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def least_cost(costs: Sequence[Cost]) -> Cost:
    """Return the least times of several runs, with the most memory of any."""
    return Cost(
        min(cost.wall for cost in costs),
        min(cost.processor for cost in costs),
        max(cost.memory for cost in costs),
    )


def look_at_files(root: str) -> Cost:
    """Return the cost of looking at each file of a tree without an index."""
    wall, processor = time.perf_counter(), time.process_time()
    Census().walk(os.fsencode(root), b"", 1 << 40, 0)
    return Cost(time.perf_counter() - wall, time.process_time() - processor, 0)


@dataclass
class Life:
    """The steps in the life of an index of `count` files, and the cost of each by label."""

    folder: Path
    count: int
    launcher: Launcher
    costs: dict[str, Cost] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tree = Tree(self.folder / "tree")
        self.index = self.folder / "index"

    def run(self, *arguments: str) -> Cost:
        """Run a process of Python, and return its cost."""
        done = self.launcher.run([sys.executable, *arguments], self.folder)
        return Cost(done.seconds, done.cpu, done.rss / 1e6)

    def step(self, label: str, *arguments: str, rounds: int = ROUNDS) -> None:
        """Measure `pylink dedup index`, each round from the present index, and check the result."""
        time.sleep(0.3)  # a run reads files again that changed just before the last one
        before = self.folder / "before"
        self.index.rename(before)
        costs = []
        for _ in range(rounds):
            shutil.rmtree(self.index, ignore_errors=True)
            shutil.copytree(before, self.index)
            costs.append(self.run("-m", "pylink", "dedup-index", "-o", str(self.index), *arguments))
        shutil.rmtree(before)
        self.print_cost(label, least_cost(costs))
        self.check()

    def print_cost(self, label: str, cost: Cost) -> None:
        """Print a cost, and its processor time relative to a plain read and to an index."""
        self.costs[label] = cost
        read, index = self.costs.get("plain read", cost), self.costs.get("index", cost)
        shares = f"{cost.processor / read.processor:7.2f} {cost.processor / index.processor:8.3f}"
        print(
            f"{label:30} {cost.wall:8.2f} s {cost.processor:8.3f} s {cost.memory:6.0f} MB {shares}",
            flush=True,
        )

    def check(self) -> None:
        """Check that the index has the same sums by family as the tree (`Tree.repeats`)."""
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

    def run_steps(self, *, disk: bool = False) -> None:
        """Make the tree and its index, and measure each step; with `disk` also from the disk."""
        more = max(1, self.count // STEP_SHARE)
        size = self.tree.make(range(self.count))
        root = str(self.tree.folder)
        print(f"{self.count} objects, {size} bytes", flush=True)
        head = "wall  processor    memory   shares of read, index"
        print(f"{'':33} {head}", flush=True)
        # The plain read comes first, since it loads the files into the page cache.
        read, indexing = [], []
        for _ in range(ROUNDS):
            read.append(self.run("-c", READ, root))
            shutil.rmtree(self.index, ignore_errors=True)
            indexing.append(self.run("-m", "pylink", "dedup-index", "-o", str(self.index), root))
        self.print_cost("plain read", least_cost(read))
        self.print_cost("index", least_cost(indexing))
        self.check()
        self.print_cost(
            "look at each file", least_cost([look_at_files(root) for _ in range(ROUNDS)])
        )
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
        self.tree.change(range(0, self.count, STEP_SHARE))
        self.step("1 % changed in place")
        self.tree.remove(range(1, self.count, STEP_SHARE))
        self.step("1 % gone")
        if disk:
            drop_from_cache(self.tree.folder)
            self.print_cost("plain read from disk", self.run("-c", READ, root))
            drop_from_cache(self.tree.folder)
            shutil.rmtree(self.index)
            self.index.mkdir()
            self.step("index from disk", root, rounds=1)

    def ask(self) -> None:
        """Measure `pylink dedup-ask` with each of these queries, which it has stored by name."""
        for name in ("repeats", "contents", "templates", "targets", "files"):
            arguments = ("-m", "pylink", "dedup-ask", str(self.index), name)
            self.print_cost(f"ask {name}", self.run(*arguments))


def compare_with_dask(life: Life) -> None:
    """Check that two workers, one of which is killed, make the same index as one process."""
    distributed: Any = need("distributed")

    root, folder = str(life.tree.folder), life.folder
    indexes = folder / "alone", folder / "spread"
    life.run("-m", "pylink", "dedup-index", "-o", str(indexes[0]), root)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0
    ) as cluster:
        arguments = ["-o", str(indexes[1]), root, "--scheduler", cluster.scheduler_address]
        begun = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-m", "pylink", "dedup-index", *arguments])
        while len(list(indexes[1].glob("fragments/0*"))) < 2 and process.poll() is None:
            time.sleep(0.01)
        next(iter(cluster.workers.values())).process.process.kill()
        status = process.wait()
    assert status == 0
    seconds = time.perf_counter() - begun
    alone, spread = map(bytes_of, indexes)
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
    benchmark.pedantic(life.run_steps, rounds=1)
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
    arguments = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="pylink-fleet-", dir=arguments.folder))
    # Let the processes use and write bytecode, as installed packages do.
    environment = {**os.environ, "PYTHONPATH": str(Path(pylink.__file__).parents[1])}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    launcher = Launcher(environment)
    try:
        life = Life(folder, arguments.objects, launcher)
        life.run_steps(disk=arguments.disk)
        life.ask()
        if arguments.dask:
            compare_with_dask(life)
    finally:
        launcher.close()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
