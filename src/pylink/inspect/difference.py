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
    """The values at a place in the first and in the second cubin; None if one lacks it.

    `kind` says what differs, such as "symbol". The place is `where` in `section`; `note` explains.
    """

    kind: str
    section: str
    where: str
    first: str | None
    second: str | None
    note: str = ""

    @property
    def place(self) -> str:
        """The section, and the place in it."""
        return f"{self.section}{self.where}"


def compare_rows(section: str, first: Sequence[Row], second: Sequence[Row]) -> list[Difference]:
    """Return the differences of a section's rows, in time nearly linear in their number.

    The n-th row of a key in the first cubin is compared with the n-th of that key in the second.
    """
    if first == second:
        return []
    first_rows, second_rows = _with_unique_keys(first), _with_unique_keys(second)
    unpaired = {key: (j, row) for j, (key, row) in enumerate(second_rows)}
    differences = []
    paired = []  # numbers in `second`, in the order of `first`
    for i, (key, row) in enumerate(first_rows):
        j, other = unpaired.pop(key, (-1, None))
        if other is not None:
            paired.append(j)
        if row != other:
            text = None if other is None else _row_text(other)
            differences.append(Difference(row.kind, section, row.where(i), _row_text(row), text))
    for j, row in unpaired.values():
        differences.append(Difference(row.kind, section, row.where(j), None, _row_text(row)))
    if paired != sorted(paired):
        i = next(i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
        note = f"{'same ' if not differences else ''}entries in another order"
        texts = _row_text(first[i]), _row_text(second[i])
        differences.insert(0, Difference(first[i].kind, section, first[i].where(i), *texts, note))
    return differences


def _with_unique_keys(rows: Sequence[Row]) -> list[tuple[tuple[str, int], Row]]:
    """Return the rows, each after its key and the number of earlier rows with that key."""
    counts: Counter[str] = Counter()
    result = []
    for row in rows:
        result.append(((row.key, counts[row.key]), row))
        counts[row.key] += 1
    return result


def _row_text(row: Row) -> str:
    return repr(row.text) if isinstance(row, Text) else str(row)


def number_difference(
    kind: str, section: str, where: str, first: int, second: int, note: str = ""
) -> Difference:
    """Make a difference of two numbers."""
    return Difference(kind, section, where, f"{first:#x}", f"{second:#x}", note)


def difference_text(names: Sequence[str], differences: Sequence[Difference], limit: int) -> str:
    """Return the differences as text: after each place, - the first value and + the second.

    `names` are those of the files; `limit` is the number of places that are shown for each section
    and kind of difference, 0 for all.
    """
    lines = [f"--- {printable(names[0])}", f"+++ {printable(names[1])}"]
    for (kind, section), group in groupby(
        differences, key=lambda change: (change.kind, change.section)
    ):
        of_section = list(group)
        listed_changes = of_section[: limit or None]
        for change in listed_changes:
            lines.append(f"{kind} {change.place}" + (f": {change.note}" if change.note else ""))
            lines += [f"  - {change.first}"] if change.first is not None else []
            lines += [f"  + {change.second}"] if change.second is not None else []
        if len(of_section) > len(listed_changes):
            lines.append(f"{kind} {section}: {len(of_section) - len(listed_changes)} more")
    counts = Counter(change.kind for change in differences)
    lines.append("differences: " + ", ".join(f"{kind} {n}" for kind, n in counts.items()))
    return "\n".join(lines) + "\n"


def difference_document(
    names: Sequence[str], differences: Sequence[Difference]
) -> dict[str, object]:
    """Return the differences as values for JSON."""
    rows = [asdict(difference) for difference in differences]
    return {"first": names[0], "second": names[1], "equal": not differences, "differences": rows}
