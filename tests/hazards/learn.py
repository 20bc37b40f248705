"""Learn the table of an architecture from code that ptxas made.

    PYTHONPATH=tests python -m hazards.learn 80 FILE.cubin ... [--functions N] [--add]

Instructions that have a write scoreboard anywhere are of variable latency; those that have a read
scoreboard anywhere read late. That holds for a base name as long as no code of ptxas contradicts
it: a result without a scoreboard that is touched although nothing waited for it, or for a later one
of its unit (`units`). Then the name is dropped and its latency counts as fixed. For fixed latencies
the fewest cycles are kept between each two kinds of instructions, where these were seen OFTEN
times; other pairs take the least of more general ones. With --add minima become smaller and the
rest of the file stays, since it does not say which names were dropped. Prints what it cannot
explain: accesses to results that a scoreboard guards, of which code of ptxas has none.
"""

# ruff: noqa: T201 - a command that reports to its user
from __future__ import annotations

import argparse
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from hazards import cubins, flow, sass, tables, units
from hazards.flow import Flow
from hazards.stalls import Stalls, own_waits
from hazards.units import RESULT_UNIT, SOURCE_UNIT
from hazards.waits import Waits
from hazards.words import NONE

OFTEN = 10  # times that the fewest cycles have to be seen for them to count
WINDOW = 40  # cycles; no fixed latency is longer
LONGEST = 12_000  # instructions of a function


def read(arch: str, paths: Iterable[Path], limit: int, seen: set[bytes]) -> Iterable[Flow]:
    """Flows of at most `limit` functions of each file, none twice."""
    decoder = sass.decoder(arch)
    for path in paths:
        file = cubins.read(path.read_bytes())
        if tables.LIKE.get(file.arch, file.arch) != arch:
            print(f"{path}: is for sm_{file.arch}")
            continue
        fresh = [part for part in file.functions if part.code not in seen]
        random.Random(1).shuffle(fresh)
        fresh = [part for part in fresh if len(part.code) <= 16 * LONGEST][:limit]
        seen.update(part.code for part in fresh)
        decoder.learn(part.code for part in fresh)
        for part in fresh:
            yield flow.build(part, decoder)


def learn(arch: str, flows: Sequence[Flow], old: tables.Table | None = None) -> tables.Table:
    """The table that explains all of `flows`, and what `old` has."""
    adds = old is not None
    old = old or tables.Table(arch)
    writes, reads = Counter[str](), Counter[str]()
    for part in flows:
        for step in part.steps:
            writes[step.instruction.base] += step.control.write != NONE and bool(
                step.registers.written
            )
            reads[step.instruction.base] += step.control.read != NONE
    variable = old.variable if adds else frozenset(+writes)
    late = old.late if adds else frozenset(+reads)
    table = tables.Table(arch, {}, variable, late)
    strange, dropped = Counter[str](), [Counter[str](), Counter[str]()]
    free: dict[str, dict[str, frozenset[str]]] = {
        kind: dict(old.free.get(kind, {})) for kind in ("overwrite", "source")
    }
    for part in flows:
        for access in Waits(part, table).accesses():
            first, second = part.steps[access.first], part.steps[access.second]
            left, right = first.instruction.base, second.instruction.base
            unit = RESULT_UNIT if access.kind == "overwrite" else SOURCE_UNIT
            if access.kind in free and left in unit and unit[left] == unit.get(right):
                row = free[access.kind]
                row[right] = row.get(right, frozenset()) | {left}
            elif access.naked and not adds:
                if not dropped[access.kind == "source"][left]:
                    print(f"{part.name}+{first.at:#x} to {second.at:#x}: {left} has no scoreboard")
                dropped[access.kind == "source"][left] += 1
            else:
                what = f"{access.kind} {left} {right}"
                if not strange[what]:
                    print(f"{part.name}+{first.at:#x} to {second.at:#x}: {what}")
                strange[what] += 1
    for what, count in strange.most_common():
        print(f"not explained: {what}: {count}")
    print("variable but for", dict(dropped[0]), "late but for", dict(dropped[1]))
    variable -= dropped[0].keys()
    late -= dropped[1].keys()
    counts: dict[str, dict[str, Counter[int]]] = defaultdict(lambda: defaultdict(Counter))
    waits = dict(old.waits)
    for part in flows:
        for distance in Stalls(part, variable, WINDOW).distances():
            before = part.steps[distance.first].instruction
            after = part.steps[distance.second].instruction
            histograms = counts[f"{distance.kind} {tables.latency_class(before)}"]
            for name in (tables.latency_class(after), units.kind(after.base), "*"):
                histograms[name][distance.cycles] += 1
        for index, _, cycles in own_waits(part):
            base = part.steps[index].instruction.base
            waits[base] = min(waits.get(base, WINDOW), cycles)
    stalls = {row: dict(found) for row, found in old.stalls.items()}
    for title, seen in counts.items():
        mine = stalls.setdefault(title, {})
        for name, histogram in seen.items():
            fewest = min(histogram)
            if name in mine:
                mine[name] = min(mine[name], fewest)
            elif histogram[fewest] >= OFTEN:
                mine[name] = fewest
    for title, mine in list(stalls.items()):
        kind, _, name = title.partition(" ")
        if kind == "overwrite":
            # When the first one's result can be read it is written.
            ready = stalls.get(f"read {name}", {}).get("*", 0)
            stalls[title] = {name: min(fewest, ready) for name, fewest in mine.items()}
        stalls[title] = _shortened(stalls[title])
    stalls = {title: mine for title, mine in stalls.items() if mine}
    source = dict(old.source)
    source["functions"] = source.get("functions", 0) + len(flows)
    source["instructions"] = source.get("instructions", 0) + sum(len(part.steps) for part in flows)
    return tables.Table(arch, source, variable, late, free, waits, stalls)


def _shortened(row: dict[str, int]) -> dict[str, int]:
    """A row without pairs that say what their kind, or all, say as well."""
    general = {name: n for name, n in row.items() if name[0] in "~*"}
    kept = {}
    for name, fewest in row.items():
        base = name.partition(".")[0]
        above = general.get(units.kind(base)) if name not in general else None
        if name == "*" or (above or general.get("*")) != fewest:
            kept[name] = fewest
    return kept


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("arch")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--functions", type=int, default=200, help="of each file at most")
    parser.add_argument("--add", action="store_true", help="to what the file has")
    arguments = parser.parse_args()
    seen: set[bytes] = set()
    found = list(read(arguments.arch, arguments.files, arguments.functions, seen))
    old = tables.load(arguments.arch) if arguments.add else None
    table = learn(arguments.arch, found, old)
    path = tables.FOLDER / f"sm_{arguments.arch}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(table.text())
    print(f"{path}: {table.source}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
