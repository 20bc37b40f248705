"""One difference of two cubins, and the pairing of rows that finds them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby

from pylink.diagnostics.stream import printable
from pylink.inspect.rows import Row, Text


@dataclass(frozen=True)
class Difference:
    """What stands at a place in the first and in the second cubin; None where nothing does."""

    kind: str
    section: str
    where: str
    first: str | None
    second: str | None
    note: str = ""

    @property
    def place(self) -> str:
        return f"{self.section}{self.where}"


def compare_rows(section: str, first: Sequence[Row], second: Sequence[Row]) -> list[Difference]:
    """Pair rows of equal key, the n-th with the n-th; linear in the number of rows."""
    if first == second:
        return []
    ours, theirs = _numbered(first), _numbered(second)
    places = {key: (j, row) for j, (key, row) in enumerate(theirs)}
    differences = []
    paired = []  # their numbers, in our order
    for i, (key, row) in enumerate(ours):
        j, other = places.pop(key, (-1, None))
        if other is not None:
            paired.append(j)
        if row != other:
            text = None if other is None else _shown(other)
            differences.append(Difference(row.kind, section, row.where(i), _shown(row), text))
    for j, row in places.values():
        differences.append(Difference(row.kind, section, row.where(j), None, _shown(row)))
    if paired != sorted(paired):
        i = next(i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
        note = f"{'same ' if not differences else ''}entries in another order"
        shown = _shown(first[i]), _shown(second[i])
        differences.insert(0, Difference(first[i].kind, section, first[i].where(i), *shown, note))
    return differences


def _numbered(rows: Sequence[Row]) -> list[tuple[tuple[str, int], Row]]:
    seen: Counter[str] = Counter()
    result = []
    for row in rows:
        result.append(((row.key, seen[row.key]), row))
        seen[row.key] += 1
    return result


def _shown(row: Row) -> str:
    return repr(row.text) if isinstance(row, Text) else str(row)


def number_difference(
    kind: str, section: str, where: str, first: int, second: int, note: str = ""
) -> Difference:
    return Difference(kind, section, where, f"{first:#x}", f"{second:#x}", note)


def difference_text(names: Sequence[str], differences: Sequence[Difference], limit: int) -> str:
    """What a person reads: for each place - what the first cubin has and + what the second."""
    lines = [f"--- {printable(names[0])}", f"+++ {printable(names[1])}"]
    for (kind, section), group in groupby(
        differences, key=lambda change: (change.kind, change.section)
    ):
        of_section = list(group)
        shown = of_section[: limit or None]
        for change in shown:
            lines.append(f"{kind} {change.place}" + (f": {change.note}" if change.note else ""))
            lines += [f"  - {change.first}"] if change.first is not None else []
            lines += [f"  + {change.second}"] if change.second is not None else []
        if len(of_section) > len(shown):
            lines.append(f"{kind} {section}: {len(of_section) - len(shown)} more")
    counts = Counter(change.kind for change in differences)
    lines.append("differences: " + ", ".join(f"{kind} {n}" for kind, n in counts.items()))
    return "\n".join(lines) + "\n"


def difference_document(
    names: Sequence[str], differences: Sequence[Difference]
) -> dict[str, object]:
    """What a program reads."""
    rows = [asdict(difference) for difference in differences]
    return {"first": names[0], "second": names[1], "equal": not differences, "differences": rows}
