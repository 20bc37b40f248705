"""A naive reference of the comparison of Mercury vectors, and random vectors.

The vectors of an object are lists of its section contents, section headers and relocation targets.
`compare_reference` walks over each as docs/dedup.md describes it, and does nothing else.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pylink.dedup import MercuryObject

Header = tuple[str, int, int, int]
Target = tuple[str, bytes]
Decision = tuple[int, int | None, int | None]  # code, stage, failing index


@dataclass(frozen=True)
class Plain:
    """The vectors of one object: primary data, section headers and relocation targets."""

    primary: Sequence[bytes] = ()
    headers: Sequence[Header] = ()
    targets: Sequence[Target] = ()
    name: str = field(default="", compare=False)

    def build(self) -> MercuryObject:
        """Return the object for the native functions."""
        return MercuryObject(self.primary, self.headers, self.targets, self.name)


def strip(name: str) -> str:
    """Return the name without its prefix `.nv.merc`; the dot after that stays."""
    return name[8:] if name.startswith(".nv.merc.") else name


def compare_reference(reference: Plain, candidate: Plain) -> Decision:
    """Compare two objects, and return code, stage and index of the first failure."""
    for i, section in enumerate(candidate.primary):
        if i >= len(reference.primary):
            return 17, 1, i
        reference_section = reference.primary[i]
        if len(reference_section) < len(section) or reference_section[: len(section)] != section:
            return 17, 1, i
    if len(candidate.headers) != len(reference.headers):
        return 19, 2, None
    for i, header in enumerate(candidate.headers):
        for other in reference.headers:
            if strip(header[0]) == strip(other[0]) and header[1:] == other[1:]:
                break
        else:
            return 19, 2, i
    if len(candidate.targets) != len(reference.targets):
        return 18, 3, None
    for i, (name, data) in enumerate(candidate.targets):
        for other_name, other_data in reference.targets:
            if strip(name) == strip(other_name) and data == other_data:
                break
        else:
            return 18, 3, i
    return 0, None, None


def fold_reference(objects: Sequence[Plain]) -> tuple[list[int | None], list[Decision | None]]:
    """Return, by object, the number of the one that it folds into, and its last comparison."""
    kept_numbers: list[int] = []
    reference: list[int | None] = []
    decisions: list[Decision | None] = []
    for row, item in enumerate(objects):
        decision, reference_number = None, None
        if not (item.primary or item.headers or item.targets):
            reference.append(None)
            decisions.append(None)
            continue
        for other in kept_numbers:
            decision = compare_reference(objects[other], item)
            if decision[0] == 0:
                reference_number = other
                break
        if reference_number is None:
            kept_numbers.append(row)
        reference.append(reference_number)
        decisions.append(decision)
    return reference, decisions


# Names with the prefix that comparisons ignore, and names that only look like them.
NAMES = (
    ".nv.merc.debug_info",
    ".debug_info",
    ".nv.merc.debug_line",
    ".nv.merc",
    ".nv.merc.",
    ".nv.mercury.debug_info",
    ".nv.merc.text.k",
    "",
)


def random_plain(rng: random.Random, most: int = 5) -> Plain:
    """Return random vectors with few different values: ties and near misses are common."""
    return Plain(
        [_bytes(rng) for _ in range(rng.randrange(most))],
        [
            (rng.choice(NAMES), rng.randrange(3), rng.randrange(3) << 32, 1 << rng.randrange(2))
            for _ in range(rng.randrange(most))
        ],
        [(rng.choice(NAMES[:4]), _bytes(rng)) for _ in range(rng.randrange(most))],
    )


def _bytes(rng: random.Random) -> bytes:
    """Return random bytes of a few sizes and two values."""
    return bytes(rng.choices(b"ab", k=rng.choice((0, 1, 2, 7, 8, 9, 24))))


def near_miss(rng: random.Random, item: Plain) -> Plain:
    """Return vectors with one change: a byte, length, field, name, order, or number of entries."""
    vector = rng.choice(("primary", "headers", "targets"))
    vectors: dict[str, list[Any]] = {
        "primary": list(item.primary),
        "headers": list(item.headers),
        "targets": list(item.targets),
    }
    rows = vectors[vector]
    at = rng.randrange(len(rows)) if rows else 0
    change = rng.choice(("field", "field", "field", "swap", "copy", "drop", "repeat"))
    if not rows or change == "copy":
        rows[at:at] = getattr(random_plain(rng, 2), vector) or rows[:1]
    elif change == "drop":
        del rows[at]
    elif change == "repeat":
        rows[at] = rows[rng.randrange(len(rows))]
    elif change == "swap":
        other = rng.randrange(len(rows))
        rows[at], rows[other] = rows[other], rows[at]
    elif vector == "primary":
        rows[at] = _spoil(rng, rows[at])
    elif vector == "headers":
        fields = list(rows[at])
        place = rng.randrange(4)
        fields[place] = rng.choice(NAMES) if place == 0 else fields[place] ^ 1 << rng.randrange(31)
        rows[at] = tuple(fields)
    else:
        name, data = rows[at]
        rows[at] = rng.choice(((rng.choice(NAMES), data), (name, _spoil(rng, data))))
    return Plain(vectors["primary"], vectors["headers"], vectors["targets"])


def _spoil(rng: random.Random, data: bytes) -> bytes:
    """Return the bytes with one byte more, one byte less, or one bit changed."""
    if not data or rng.randrange(3) == 0:
        return data + b"a"
    if rng.randrange(2):
        return data[:-1]
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
