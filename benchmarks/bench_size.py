"""`pylink size` of a library beside cubloaty (PyPI) and cuobjdump: time, processor time, memory.

`python benchmarks/bench_size.py LIBRARY...` runs the tools in turn and prints a table; tools that
are not on PATH are omitted. The sum of pylink's rows must be the file's size.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROUNDS = 3
# By title: the command of a tool, to which the name of the library is added.
TOOLS = {
    "pylink size": ["pylink", "size"],
    "pylink size --by function": ["pylink", "size", "--by", "function"],
    "cubloaty": ["cubloaty"],
    "cuobjdump -all -lelf -lptx": ["cuobjdump", "-all", "-lelf", "-lptx"],
}


def cost(command: list[str]) -> tuple[float, float, float]:
    """Return wall seconds, processor seconds and peak memory in MiB of one run of a command."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - start
    if child.returncode:
        raise SystemExit(f"{' '.join(command)}: exit status {child.returncode}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def check(library: str) -> None:
    """Check that the rows of `pylink size` add up to the size of the file."""
    text = subprocess.run(
        ["pylink", "size", "--json", "--by", "part", library],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    rows = json.loads(text)["tables"][0]["rows"]
    assert sum(row["installed"] for row in rows) == os.path.getsize(library)


def main(libraries: list[str]) -> None:
    tools = [name for name, command in TOOLS.items() if shutil.which(command[0])]
    for library in libraries:
        check(library)
        best: dict[str, tuple[float, ...]] = {}
        for _ in range(ROUNDS):
            for name in tools:
                costs = cost([*TOOLS[name], library])
                best[name] = tuple(map(min, best.get(name, costs), costs))
        print(f"{library}, {os.path.getsize(library) / 1e6:.0f} MB; best of {ROUNDS}")
        for name, (wall, processor, memory) in best.items():
            print(f"  {name:28}{wall:7.2f} s {processor:7.2f} s of processor {memory:7.0f} MiB")


if __name__ == "__main__":
    main(sys.argv[1:])
