"""What folding does for a whole build, and what stands in its way."""

from __future__ import annotations

import array
from collections import Counter, defaultdict
from dataclasses import astuple, dataclass, field
from html import escape
from typing import TYPE_CHECKING

from pylink._native.twins import find_twins
from pylink.dedup.rows import BlockerRow, FamilySums, in_words
from pylink.mercury.cubin import CAPSULE
from pylink.mercury.folding import fold
from pylink.mercury.prefilter import digests_of
from pylink.mercury.reasons import ACCEPTED, BLOCKERS, show
from pylink.mercury.rows import FoldRow, fold_row
from pylink.mercury.stages import Verdict, compare
from pylink.tabular.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pylink.mercury.folding import FoldResult
    from pylink.mercury.objects import MercuryObject, Payload
    from pylink.mercury.stats import Stats

# Kept objects that are looked at, for each section, in search of the most similar one.
NEIGHBOURS = 16
RELOCATIONS = "rela"
NUMBER_SIZE = 2


@dataclass
class FamilyRow:
    """Sections of one family: how many, and how many bytes, in all and by what folding does."""

    sections: int = 0
    bytes: int = 0
    folded_sections: int = 0
    folded_bytes: int = 0
    # Equal to an earlier section of the build, with equal relocations, whether or not the whole
    # objects fold: an upper bound for folding section by section, which takes symbols on trust.
    single_sections: int = 0
    single_bytes: int = 0

    def count(self, size: int, folded: bool, single: bool) -> None:
        self.sections += 1
        self.bytes += size
        self.folded_sections += folded
        self.folded_bytes += size * folded
        self.single_sections += single
        self.single_bytes += size * single


@dataclass
class Candidate:
    """One object: its reference, or the verdict of the kept object most like it."""

    item: MercuryObject
    reference: MercuryObject | None
    verdict: Verdict | None

    @property
    def row(self) -> FoldRow:
        """It as a row of a table."""
        item, into = self.item, self.reference
        row = fold_row(item.name, None if into is None else into.name, self.verdict)
        return row._replace(sections=len(item.headers) + len(item.targets), size=item.size)


@dataclass(repr=False)
class Analysis:
    """The build as folded, and as it could be; `table` and the others have it with columns."""

    candidates: list[Candidate]
    families: dict[str, FamilyRow]
    blockers: Counter[str]
    unlisted: dict[str, tuple[int, int]]
    stats: Stats
    payload_bytes: int
    # What the output of a link of these objects loses; None where that is not known.
    saved_bytes: int | None = None
    without: list[str] = field(default_factory=list)

    @property
    def total(self) -> FamilyRow:
        """All families together."""
        total = FamilyRow()
        for row in self.families.values():
            for name in vars(total):
                setattr(total, name, getattr(total, name) + getattr(row, name))
        return total

    @property
    def table(self) -> Table[FoldRow]:
        """A row for each cubin with Mercury sections: into which it folds, or why it does not."""
        return Table(FoldRow, (candidate.row for candidate in self.candidates))

    @property
    def family_table(self) -> Table[FamilySums]:
        """A row for each family of Mercury sections: how many, and how many bytes fold."""
        families = self.families.items()
        return Table(FamilySums, (FamilySums(name, *astuple(row)) for name, row in families))

    @property
    def blocker_table(self) -> Table[BlockerRow]:
        """A row for each kind of difference that keeps cubins from folding, the commonest first."""
        counted = self.blockers.most_common()
        return Table(BlockerRow, (BlockerRow(in_words(name), count) for name, count in counted))

    @property
    def summary(self) -> str:
        """How many fold and what that saves, in a sentence."""
        folded = sum(candidate.reference is not None for candidate in self.candidates)
        text = f"{folded} of {len(self.candidates)} objects fold"
        if self.saved_bytes is not None:
            text += f"; the output of a link loses {self.saved_bytes} bytes"
        elif folded:
            text += "; what an output loses is not known, because these inputs do not link"
        if self.without:
            text += f"; {len(self.without)} without Mercury sections"
        return text

    def __repr__(self) -> str:
        return f"<Analysis: {self.summary}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the sum of it, what blocks folding, the largest cubins."""
        return (
            f"<p>{escape(self.summary)}</p>"
            + (self.blocker_table._repr_html_() if self.blockers else "")
            + self.table.sorted_by("size", descending=True)._repr_html_()
            + "<p><code>.table</code>, <code>.family_table</code> and <code>.blocker_table</code> "
            "are tables.</p>"
        )


@dataclass
class _Rows:
    """Every section of the build as a row: its object, family, bytes and relocations.

    The bytes of a capsule begin after the section number of its function, which each link rewrites.
    """

    owners: list[int] = field(default_factory=list)
    families: list[str] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    names: list[tuple[str, int]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    sections: list[Payload] = field(default_factory=list)
    relocations: list[Payload] = field(default_factory=list)


def analyse(
    objects: Sequence[MercuryObject],
    *,
    prefilter: str = "xxh3",
    identity: str = "symbols",
    progress: Callable[[int], None] | None = None,
    result: FoldResult | None = None,
) -> Analysis:
    """Fold the objects that have Mercury sections and explain the outcome.

    `result` is that of folding them, where somebody has done so: all of `objects` have sections.
    """
    items = [item for item in objects if item.headers or item.targets]
    if result is None:
        result = fold(items, prefilter=prefilter, identity=identity, progress=progress)
    rows = _rows(items)
    leaders = _leaders(rows, prefilter == "xxh3")
    families: dict[str, FamilyRow] = {}
    for row, owner in enumerate(rows.owners):
        folded = result.reference[owner] is not None
        single = leaders[row] != row
        counted = [(rows.families[row], rows.sizes[row])]
        if rows.relocations[row]:
            counted.append((RELOCATIONS, len(rows.relocations[row])))
        for family, size in counted:
            families.setdefault(family, FamilyRow()).count(size, folded, single)
    nearest = _nearest(rows, leaders, result.reference)
    candidates = []
    blockers: Counter[str] = Counter()
    for row, (item, earlier) in enumerate(zip(items, result.reference, strict=True)):
        verdict = result.verdicts[row]
        if earlier is None and row in nearest:
            other = items[nearest[row]]
            verdict = compare(other, item, prefilter=prefilter, identity=identity)
        if verdict is not None and verdict.why != ACCEPTED:
            blockers[blocker_of(verdict)] += 1
        reference = None if earlier is None else items[earlier]
        candidates.append(Candidate(item, reference, verdict))
    without = [item.name for item in objects if not (item.headers or item.targets)]
    return Analysis(
        candidates,
        dict(sorted(families.items())),
        blockers,
        _unlisted(items),
        result.stats,
        result.payload_bytes,
        without=without,
    )


@dataclass
class SectionTwin:
    """A section of object `owner`, and the object of the first section equal to it, if any.

    Equal are the bytes and the relocations. Relocations without a section of their own stand for
    themselves.
    """

    owner: int
    name: str
    size: int
    leader: int | None


def section_twins(objects: Sequence[MercuryObject]) -> list[SectionTwin]:
    """Every section of the objects, in order."""
    rows = _rows(objects)
    leaders = _leaders(rows, hashed=True)
    return [
        SectionTwin(owner, title, size, None if leader == row else rows.owners[leader])
        for row, (owner, title, size, leader) in enumerate(
            zip(rows.owners, rows.titles, rows.sizes, leaders, strict=True)
        )
    ]


def blocker_of(verdict: Verdict) -> str:
    """The kind of difference, with the family it concerns."""
    text, index = BLOCKERS[verdict.why], verdict.index
    if index is None or verdict.symbol is not None:
        return text
    return f"{text}: {RELOCATIONS if verdict.stage == 3 else verdict.candidate.families[index]}"


def _unlisted(items: Sequence[MercuryObject]) -> dict[str, tuple[int, int]]:
    """Sections and bytes of Mercury names that never enter the vectors, by name without suffix."""
    unlisted: dict[str, tuple[int, int]] = {}
    for item in items:
        for name, size in item.unlisted:
            family = ".nv.merc.nv.info.*" if name.startswith(".nv.merc.nv.info.") else name
            count, total = unlisted.get(family, (0, 0))
            unlisted[family] = (count + 1, total + size)
    return dict(sorted(unlisted.items()))


def _rows(items: Sequence[MercuryObject]) -> _Rows:
    rows = _Rows()
    for owner, item in enumerate(items):
        pending = {_relocated(name): data for name, data in item.targets}
        for (name, _, _, align), family, data in zip(
            item.headers, item.families, item.primary, strict=True
        ):
            rows.owners.append(owner)
            rows.families.append(family)
            rows.titles.append(show(name))
            rows.names.append((_short(show(name)), align))
            rows.sizes.append(len(data))
            rows.sections.append(data[NUMBER_SIZE:] if name.startswith(CAPSULE) else data)
            rows.relocations.append(pending.pop(_short(show(name)), b""))
        # Relocations of sections that are not compared themselves.
        for short, data in pending.items():
            rows.owners.append(owner)
            rows.families.append(RELOCATIONS)
            rows.titles.append(f".nv.merc.rela{short}")
            rows.names.append((".rela" + short, 8))
            rows.sizes.append(len(data))
            rows.sections.append(data)
            rows.relocations.append(b"")
    return rows


def _short(name: str) -> str:
    """`.nv.merc.debug_info` and `.nv.capmerc.text.k` as `.debug_info` and `.text.k`."""
    for prefix in (".nv.merc", ".nv.capmerc"):
        if name.startswith(prefix + "."):
            return name[len(prefix) :]
    return name


def _relocated(name: bytes) -> str:
    return _short(show(name)).removeprefix(".rela")


def _leaders(rows: _Rows, hashed: bool) -> array.array[int]:
    """For each row the first one equal to it; digests are taken only where names and sizes tie."""
    ties: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for row, (name, data) in enumerate(zip(rows.names, rows.sections, strict=True)):
        ties[(name, len(data), len(rows.relocations[row]))].append(row)
    keys = [0] * len(rows.names)
    for group, members in enumerate(ties.values()):
        digests = [0] * len(members)
        if hashed and len(members) > 1:
            digests = digests_of([rows.sections[row] for row in members])
        for row, digest in zip(members, digests, strict=True):
            keys[row] = hash((group, digest)) & 0xFFFF_FFFF_FFFF_FFFF
    leaders, _, _ = find_twins(rows.sections, rows.relocations, keys)
    return array.array("q", leaders)


def _nearest(
    rows: _Rows, leaders: array.array[int], reference: Sequence[int | None]
) -> dict[int, int]:
    """For each kept object the kept one before it that shares most bytes with it."""
    holders: defaultdict[int, list[int]] = defaultdict(list)
    shared: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for row, owner in enumerate(rows.owners):
        if reference[owner] is None:
            known = holders[leaders[row]]
            for other in known[:NEIGHBOURS]:
                if other != owner:
                    shared[owner][other] += rows.sizes[row] + len(rows.relocations[row])
            known.append(owner)
    return {owner: counts.most_common(1)[0][0] for owner, counts in shared.items()}
