"""The limits of a faster link: counters of large links, beside a copy of the same bytes.

`make limits` prints how much more two cores do than one: in a virtual machine they may be two
threads of one core. For each architecture it prints the times of a link and of a copy in turn. It
also prints the work of the link (page faults, bytes, rows), the cost of each on this machine, and
the share of the link that one thread does alone. With `LIMITS=--steps` it prints the time of each
native function instead, with `LIMITS=--space` the least address space of a link.
"""

from __future__ import annotations

import argparse
import mmap
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import numpy as np

import pylink
from benchmarks import inputs
from pylink._native import elfread, inputfiles
from pylink.bench.resident import copy
from pylink.facts.elf import SHT_RELA
from pylink.facts.records import RELA

ARCHS = ("100", "90a")
PAGE = mmap.PAGESIZE
# Bytes of memory that do not fit into any cache.
LARGE = 256 << 20
# Native functions that take fewer milliseconds in one thread are not shown.
LEAST_SHOWN = 0.3
# A program that links in an address space of at most so many bytes as its first argument says.
IN_SPACE = """
import resource, sys
import pylink
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), resource.RLIM_INFINITY))
pylink.link(sys.argv[4:], arch=sys.argv[2], output=sys.argv[3])
"""
# A program that links as often as its first argument says, and prints its peak memory in KiB.
PEAK = """
import re, sys
import pylink
for _ in range(int(sys.argv[1])):
    pylink.link(sys.argv[4:], arch=sys.argv[2], output=sys.argv[3])
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""
# A program that prints the seconds that work in the cache of one core takes.
IN_CACHE = """
import time
start, last = time.perf_counter(), 0
for number in range(6_000_000):
    last ^= number
print(time.perf_counter() - start)
"""


# Wall time, processor time of the program and of the system in seconds, and number of page faults.
Row = tuple[float, float, float, int]


def parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments."""
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    options.add_argument("--count", type=int, default=1600, help="inputs (default: 1600)")
    options.add_argument("--size", default="50KB", help="of modules, 15KB or 50KB (default: 50KB)")
    options.add_argument("--rounds", type=int, default=15, help="links of each kind (default: 15)")
    options.add_argument("--rest", type=float, default=0, help="seconds before each (default: 0)")
    options.add_argument("--space", action="store_true", help="find the least address space")
    options.add_argument("--steps", action="store_true", help="print what each kernel takes")
    return options


def main() -> None:
    arguments = parser().parse_args()
    steps = Steps()
    print(f"two cores do {work_of_two():.2f} times the work of one")
    for arch in ARCHS:
        folder, names = inputs.cubins(arch, arguments.size, arguments.count)
        os.chdir(folder)
        print(f"sm_{arch}, {arguments.count} inputs of {arguments.size}")
        with TemporaryDirectory(dir=folder.parent) as scratch:
            output = str(Path(scratch) / "linked.cubin")
            if arguments.space:
                print_space(arch, names, output)
            elif arguments.steps:
                print_steps(steps, arch, names, output, arguments.rounds)
            else:
                print_counters(arch, names, output, arguments.rounds, arguments.rest)


def print_counters(arch: str, names: list[str], output: str, rounds: int, rest: float) -> None:
    """Print the times of links and copies, measured in turn, and medians of the link's counters."""

    def link(threads: int | None = None) -> None:
        pylink.link(names, arch=f"sm_{arch}", output=output, threads=threads)

    link()
    link()
    links: list[Row] = []
    copies: list[Row] = []
    alone: list[Row] = []
    for _ in range(rounds):
        for run, counters in (
            (link, links),
            (lambda: copy(names, output), copies),
            (lambda: link(1), alone),
        ):
            Path(output).unlink(missing_ok=True)
            time.sleep(rest)
            counters.append(measure(run))
    wall, user, system, faults = (statistics.median(column) for column in zip(*links, strict=True))
    copied = statistics.median(row[0] for row in copies)
    single = statistics.median(row[0] for row in alone)
    ratio = statistics.median(a[0] / b[0] for a, b in zip(links, copies, strict=True))
    print(f"  link {wall * 1e3:.0f} ms, copy {copied * 1e3:.0f} ms, ratio {ratio:.2f}")
    print(f"  processor time {user * 1e3:.0f} ms of the program, {system * 1e3:.0f} of the system")
    # Amdahl's law for the cores, solved for `serial`: wall = serial + (single - serial) / cores.
    cores = len(os.sched_getaffinity(0))
    serial = min(max((cores * wall - single) / (cores - 1), 0), wall) if cores > 1 else single
    print(
        f"  one thread {single * 1e3:.0f} ms, so serial {serial * 1e3:.0f} ms of {wall * 1e3:.0f}"
    )
    fault = fault_cost()
    print(f"  {faults:.0f} page faults of {fault * 1e6:.2f} us: {faults * fault * 1e3:.1f} ms")
    read = sum(Path(name).stat().st_size for name in names)
    written = Path(output).stat().st_size
    speed = bandwidth()
    moved = 2 * (read + written)
    print(
        f"  {read / 1e6:.0f} MB read, {written / 1e6:.0f} MB written; moving both once at "
        f"{speed / 1e9:.1f} GB/s: {moved / speed * 1e3:.0f} ms"
    )
    sections, symbols, relocations = count_rows(names)
    print(
        f"  {sections} sections, {symbols} symbols, {relocations} relocations: one for each "
        f"{read / (sections + symbols + relocations):.0f} bytes, of which a copy reads none; "
        f"{(wall - copied) / (sections + symbols + relocations) * 1e9:.0f} ns each above the copy"
    )


class Steps:
    """Times the calls of native functions: by name, wall and processor seconds of all calls.

    A function that works in several threads has more processor time than wall time.
    """

    def __init__(self) -> None:
        self.times: dict[str, tuple[float, float]] = {}
        self._inside = False

    def time_functions(self, module: ModuleType) -> None:
        """Replace the functions of a native module by functions that also measure their time."""
        kernel = module.__name__.removeprefix("pylink._native.")
        for name, function in list(vars(module).items()):
            if type(function).__name__ == "builtin_function_or_method":
                setattr(module, name, self._timed(f"{kernel}.{name}", function))

    def _timed(self, name: str, function: Callable[..., object]) -> Callable[..., object]:
        """Wrap a function so that its times, calls inside of it included, add up under `name`."""

        def call(*args: object, **keywords: object) -> object:
            if self._inside:  # called by another one, or by a second thread
                return function(*args, **keywords)
            self._inside = True
            wall, cpu = time.perf_counter(), time.process_time()
            try:
                return function(*args, **keywords)
            finally:
                elapsed = time.perf_counter() - wall, time.process_time() - cpu
                before = self.times.get(name, (0.0, 0.0))
                self.times[name] = before[0] + elapsed[0], before[1] + elapsed[1]
                self._inside = False

        return call


def print_steps(steps: Steps, arch: str, names: list[str], output: str, rounds: int) -> None:
    """Print the median times of each native function: of a link by all threads, and by one."""
    walls: dict[int | None, list[dict[str, tuple[float, float]]]] = {None: [], 1: []}
    pylink.link(names, arch=f"sm_{arch}", output=output)
    for name, module in list(sys.modules.items()):
        if name.startswith("pylink._native."):
            steps.time_functions(module)
    for _ in range(rounds):
        for threads, times_by_round in walls.items():
            Path(output).unlink(missing_ok=True)
            steps.times = {}
            pylink.link(names, arch=f"sm_{arch}", output=output, threads=threads)
            times_by_round.append(steps.times)
    print("  kernel: wall and processor time of all threads, wall time of one, in ms")
    for name in walls[1][0]:
        wall, cpu, alone = (
            1e3 * statistics.median(times.get(name, (0.0, 0.0))[column] for times in walls[threads])
            for threads, column in ((None, 0), (None, 1), (1, 0))
        )
        if alone >= LEAST_SHOWN:
            print(f"  {name:32} {wall:6.1f} {cpu:6.1f} {alone:6.1f}")


def measure(run: Callable[[], object]) -> Row:
    """Run once, and return times and page faults."""
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    run()
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    user = after.ru_utime - before.ru_utime
    return wall, user, after.ru_stime - before.ru_stime, after.ru_minflt - before.ru_minflt


def work_of_two() -> float:
    """Return how many times the work of one process two do: less than 2 on threads of one core."""
    command = [sys.executable, "-S", "-c", IN_CACHE]
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(5):
        for count, seconds in times.items():
            programs = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(count)]
            seconds += [float(program.communicate()[0]) for program in programs]
    return 2 * statistics.median(times[1]) / statistics.median(times[2])


def fault_cost() -> float:
    """Return the seconds of the first access to a page of memory, the least of several mappings."""
    pages, best = 4096, float("inf")
    for _ in range(5):
        with mmap.mmap(-1, pages * PAGE) as memory:
            memory.madvise(mmap.MADV_NOHUGEPAGE)
            bytes_of = np.frombuffer(memory, np.uint8)
            start = time.perf_counter()
            bytes_of[::PAGE] = 1
            best = min(best, time.perf_counter() - start)
            del bytes_of
    return best / pages


def bandwidth() -> float:
    """Return the bytes that a copy of memory too large for caches reads and writes per second."""
    source, target = np.ones(LARGE, np.uint8), np.ones(LARGE, np.uint8)
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        np.copyto(target, source)
        best = min(best, time.perf_counter() - start)
    return 2 * LARGE / best


def count_rows(names: list[str]) -> tuple[int, int, int]:
    """Return numbers of sections, symbols and relocations (RELA only) of all inputs."""
    paths: list[bytes | None] = [os.fsencode(name) for name in names]
    sizes = [Path(name).stat().st_size for name in names]
    arena, extents, _, _ = inputfiles.read_files(paths, sizes, [None] * len(names))
    _, sections, symbols, _ = elfread.parse(arena, extents)
    entries = zip(sections.column("type"), sections.column("size"), strict=True)
    relocations = sum(size // RELA.size for kind, size in entries if kind == SHT_RELA)
    return len(sections), len(symbols), relocations


def print_space(arch: str, names: list[str], output: str) -> None:
    """Print the least RLIMIT_AS in which a process links, and its peaks for one link and three."""
    least, most = 0, 64 << 30
    while most - least > 1 << 20:
        middle = (least + most) // 2
        if can_link_within(middle, arch, names, output):
            most = middle
        else:
            least = middle
    print(f"  least address space {most / 1e6:.0f} MB")
    for links in (1, 3):
        command = [sys.executable, "-c", PEAK, str(links), f"sm_{arch}", output, *names]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        (peak,) = re.findall(r"\d+", done.stdout)
        print(f"  peak of {links} links in a process {int(peak) * 1024 / 1e6:.0f} MB")


def can_link_within(space: int, arch: str, names: list[str], output: str) -> bool:
    """Return whether a process links in an address space of `space` bytes."""
    command = [sys.executable, "-c", IN_SPACE, str(space), f"sm_{arch}", output, *names]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    main()
