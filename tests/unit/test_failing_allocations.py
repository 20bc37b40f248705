"""Memory that runs out at any request of a kernel: one message, and no signal or half an output.

A library that is loaded before C's counts the requests for memory from the kernels' code alone, and
fails one. Each link is repeated for each of its requests, in one process, which then still links,
and whose kernels have no more blocks of memory than before.
An output that is there all the same was complete when memory ran out: a report is written after it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import archive_builder, demo
from helpers.fatbin_builder import container, entry, host_object

ROOT = Path(__file__).parents[2]
FAILING_MALLOC = ROOT / "tests" / "helpers" / "failing_malloc.c"
GOLDEN = ROOT / "tests" / "golden"

CASES = ["75/calls", "80/shared", "90a/calls", "100/calls", "100/debug", "100/weak", "120/shared"]

# Reads command lines, one list a line; prints for each how many requests there were, and what
# happened otherwise than it should.
PROGRAM = """
import contextlib, ctypes, gc, io, json, os, sys
import pylink._native.merge
from pylink.command.cli import main

code = [line for line in open("/proc/self/maps") if "/kernels." in line and " r-xp " in line]
first, last = (int(word, 16) for word in code[0].split()[0].split("-"))
arm = ctypes.CDLL(None).arm
arm.argtypes = [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_long]
arm.restype = ctypes.c_long
held = ctypes.CDLL(None).held
held.restype = ctypes.c_long

def run(argv, number):
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        arm(first, last, number)
        try:
            status = main(argv)
        except BaseException as error:
            status = repr(error)
        asked = arm(first, last, -1)
    made = None
    if os.path.exists("out"):
        with open("out", "rb") as stream:
            made = stream.read()
        os.unlink("out")
    return asked, (status, said.getvalue(), made)

for line in sys.stdin:
    argv = json.loads(line)
    run(argv, -1)
    asked, right = run(argv, -1)
    gc.collect()
    before = held()
    wrong = []
    for number in range(asked):
        _, found = run(argv, number)
        gc.collect()
        if held() != before:
            wrong.append([number, f"blocks of memory that stay: {held() - before}"])
            before = held()
        status, said, made = found
        short = status == 1 and said.count("not enough memory") == 1 and made in (None, right[2])
        if found != right and not short:
            wrong.append([number, status, said, made is not None and made != right[2]])
    if run(argv, -1)[1] != right:
        wrong.append("later links are others")
    print(json.dumps([asked, wrong]), flush=True)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("library") / "failing_malloc.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", "-o", path, FAILING_MALLOC, "-ldl"], check=True
    )
    return path


def outcomes(library: Path, folder: Path, lines: list[list[str]]) -> list[tuple[int, list[object]]]:
    """The number of requests of each command line, and what went wrong in it."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input="".join(f"{json.dumps(line)}\n" for line in lines),
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=os.environ | {"LD_PRELOAD": str(library)},
    )
    assert (done.returncode, done.stderr) == (0, ""), f"{done.stderr}\n{done.stdout}"
    return [(asked, wrong) for asked, wrong in map(json.loads, done.stdout.splitlines())]


@pytest.mark.parametrize("case", CASES)
def test_recorded_links(library: Path, tmp_path: Path, case: str) -> None:
    """Executables, relocatable objects, second stages, debug data, selected kernels."""
    record = json.loads((GOLDEN / case / "link.json").read_text())
    lines = [
        [str(GOLDEN / case / word) if (GOLDEN / case / word).is_file() else word for word in words]
        for words in (variant["argv"][1:] for variant in record["variants"].values())
        if "-o" in words
    ]
    for line in lines:
        line[line.index("-o") + 1] = "out"
    found = outcomes(library, tmp_path, lines)
    assert len(found) == len(lines)
    assert max(asked for asked, _ in found) > 60
    assert [(line, wrong) for line, (_, wrong) in zip(lines, found, strict=True) if wrong] == []


def test_links_of_containers_and_reports(library: Path, tmp_path: Path) -> None:
    """Fat binaries, host objects, archives, a map, statistics, remarks, folded Mercury sections."""
    cubins = demo.cubins("sm_100")
    data = [path.read_bytes() for path in cubins]
    (tmp_path / "a.fatbin").write_bytes(container(entry(data[0], 100, mode="zstd")))
    (tmp_path / "b.o").write_bytes(
        host_object([("__nv_relfatbin", container(entry(data[1], 100, mode="lz4")))])
    )
    members = [(path.name, image) for path, image in zip(cubins[2:], data[2:], strict=True)]
    (tmp_path / "c.a").write_bytes(archive_builder.gnu(members))
    link = ["-arch=sm_100", "a.fatbin", "b.o", "c.a", "-o", "out"]
    lines = [
        link,
        [*link, "-v", "--Map=map"],
        [*link, "-dump-callgraph"],
        [*link, "--pass-remarks=.*", "--pass-remarks-output=remarks.yaml"],
        ["-arch=sm_100", *map(str, cubins), "-o", "out", "--time-trace=trace.json"],
        ["inspect", *map(str, cubins[:1])],
        ["dedup", *map(str, cubins)],
    ]
    found = outcomes(library, tmp_path, lines)
    assert [(line, wrong) for line, (_, wrong) in zip(lines, found, strict=True) if wrong] == []
