"""What instructions read and write, as `nvdisasm -lrm wide` prints it behind each."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

from helpers import oracle

from hazards.operands import FILES

PARTS = {"GPR": "R", "PRED": "P", "UGPR": "UR", "UPRED": "UP"}
LINE = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;\s*// (.*)$")
SECTION = re.compile(r"^\s+\.section\s+\.text\.([^,]+),")


@dataclass(frozen=True)
class LifeRange:
    """Numbers of the registers that one instruction reads and writes."""

    function: str
    at: int
    text: str
    read: frozenset[int]
    written: frozenset[int]


def read(image: bytes) -> Iterator[LifeRange]:
    """The life ranges of a cubin, instruction by instruction."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(image)
        file.flush()
        argv = [oracle.toolchain().tool("nvdisasm"), "-lrm", "wide", file.name]
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
    function, columns, titles = "", dict[int, int](), ""
    for line in done.stdout.splitlines():
        if found := SECTION.match(line):
            function, columns = found[1], {}
        _, _, table = line.partition("// |")
        if "GPR" in table:
            titles = table
        elif table.startswith("  # ") or re.match(r"\s+# 0", table):
            columns = dict(_columns(titles, table))
        elif found := LINE.match(line):
            marks = found[3][1:]
            kinds = {
                mark: frozenset(n for at, n in columns.items() if marks[at : at + 1] in (mark, "x"))
                for mark in "v^"
            }
            yield LifeRange(function, int(found[1], 16), found[2], kinds["v"], kinds["^"])


def _columns(titles: str, numbers: str) -> Iterator[tuple[int, int]]:
    """The places of a line where marks stand, with the registers that they are of."""
    start = 0
    for title, part in zip(titles.split("|"), numbers.split("|"), strict=True):
        first = FILES.get(PARTS.get(title.strip(), ""))
        for found in re.finditer(r"\d+", part):
            if first is not None:
                yield start + found.end() - 1, first + int(found[0])
        start += len(part) + 1
