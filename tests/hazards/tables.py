"""What is known of an architecture: the tables in `tables/`, learnt from the code of ptxas
(`learn`).

variable    base names of instructions whose results have a scoreboard
late        base names of instructions whose sources have one
free        "source": {"LDS": "STS LDG"}: LDS may overwrite sources of STS and LDG that stand in
front of
            it in the same unit; "overwrite": the same of results
waits       base name: the fewest cycles between an instruction and a wait for its own scoreboard
stalls      "read FADD": {"FMUL": 4}: the fewest cycles between an instruction of fixed latency and
one
            that reads (or has as its guard, or overwrites) what it wrote; "~memory" stands for all
            of a kind (`units.kind`), "*" for all
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from hazards import units
from hazards.errors import Unfollowed
from hazards.sass import Instruction

FOLDER = Path(__file__).parent / "tables"
# The same code runs on these, and ptxas makes the same for both.
LIKE = {"87": "86", "88": "86", "101": "110", "121": "120"}
# Cycles from a comparison to the branch that it guards. Only matrix products have longer fixed
# latencies, so pairs that were always seen further apart were never seen close.
LONGEST = 13
# Modifiers that change when a result is there.
LATENCY_MODS = frozenset({"WIDE", "HI", "MMA", "64"})


class UnknownArchitecture(Unfollowed):
    """Nothing was learnt for an architecture."""


@dataclass
class Table:
    """What was learnt; see the head of this module."""

    arch: str
    source: dict[str, int] = field(default_factory=dict)
    variable: frozenset[str] = frozenset()
    late: frozenset[str] = frozenset()
    free: dict[str, dict[str, frozenset[str]]] = field(default_factory=dict)
    waits: dict[str, int] = field(default_factory=dict)
    stalls: dict[str, dict[str, int]] = field(default_factory=dict)

    def needed(self, kind: str, first: Instruction, second: Instruction) -> int | None:
        """Fewest cycles between two instructions, or None if too little is known.

        It is that of all pairs whose second one is of the same kind: the fewest cycles of a single
        pair may not have been seen.
        """
        row = self.stalls.get(f"{kind} {latency_class(first)}", {})
        fewest = row.get(units.kind(second.base), row.get("*"))
        if fewest is not None and fewest > LONGEST and first.base not in units.PRODUCTS:
            return None
        return fewest

    def text(self) -> str:
        """The file of this table: JSON, a line for each row."""

        def dump(value: object) -> str:
            return json.dumps(value, sort_keys=True)

        free = {
            kind: {base: " ".join(sorted(firsts)) for base, firsts in found.items()}
            for kind, found in self.free.items()
        }
        stalls = ",\n".join(
            f"  {dump(row)}: {dump(self.stalls[row])}" for row in sorted(self.stalls)
        )
        return (
            "{\n"
            f' "arch": {dump(self.arch)},\n "source": {dump(self.source)},\n'
            f' "variable": {dump(" ".join(sorted(self.variable)))},\n'
            f' "late": {dump(" ".join(sorted(self.late)))},\n'
            f' "free": {dump(free)},\n'
            f' "waits": {dump(self.waits)},\n "stalls": {{\n{stalls}\n }}\n}}\n'
        )


def known(arch: str) -> bool:
    """Whether there is a table of an architecture."""
    return (FOLDER / f"sm_{LIKE.get(arch, arch)}.json").is_file()


@cache
def load(arch: str) -> Table:
    """The table of an architecture, such as "80"; UnknownArchitecture if there is none."""
    path = FOLDER / f"sm_{LIKE.get(arch, arch)}.json"
    if not path.is_file():
        raise UnknownArchitecture(f"sm_{arch}: no table of waits and stalls")
    data = json.loads(path.read_text())
    return Table(
        arch,
        data["source"],
        frozenset(data["variable"].split()),
        frozenset(data["late"].split()),
        {
            kind: {base: frozenset(firsts.split()) for base, firsts in found.items()}
            for kind, found in data["free"].items()
        },
        data["waits"],
        data["stalls"],
    )


def latency_class(instruction: Instruction) -> str:
    """The name that an instruction has in `stalls`."""
    if instruction.base in units.PRODUCTS:
        return instruction.name
    return ".".join((instruction.base, *(mod for mod in instruction.mods if mod in LATENCY_MODS)))
