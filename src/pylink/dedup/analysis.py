"""Analyzes folding in a whole build: which objects fold, and what keeps the others from it.

An object folds if an earlier one has equal Mercury sections, which can replace its own. A link then
keeps only those of the earlier one.
"""

from __future__ import annotations

import array
from collections import Counter, defaultdict
from dataclasses import astuple, dataclass, field
from html import escape

from pylink._native.twins import find_twins
from pylink.dedup.rows import BlockerRow, FamilySums, describe_blocker
from pylink.facts.outcomes import FoldOutcome
from pylink.mercury.cubin import CAPSULE_PREFIX
from pylink.mercury.folding import fold
from pylink.mercury.prefilter import digests_of
from pylink.mercury.reasons import BLOCKERS, show_name
from pylink.mercury.rows import FoldRow, fold_row
from pylink.mercury.stages import Verdict, compare
from pylink.tabular.table import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pylink.mercury.folding import FoldResult
    from pylink.mercury.objects import MercuryObject, Payload
    from pylink.mercury.stats import Stats

# The search for the most similar object considers, for each section of an object that does not
# fold, at most this number of earlier objects that do not fold and have an equal section.
MAX_COMPARED = 16
# Label of all relocation sections in the table of section families.
RELOCATIONS = "rela"
NUMBER_SIZE = 2  # bytes of the section number at the start of a capsule


@dataclass
class FamilyRow:
    """Number and bytes of the sections of one family, such as all sections `.debug_line`.

    Fields without a prefix count all sections. Those with `folded` count sections of objects that
    fold, and those with `single` sections that would fold if each folded on its own.
    """

    sections: int = 0
    bytes: int = 0
    folded_sections: int = 0
    folded_bytes: int = 0
    # Sections that equal an earlier section, relocations included, whether or not their objects
    # fold. As symbols are not compared, this is an upper bound for folding section by section.
    single_sections: int = 0
    single_bytes: int = 0

    def count(self, size: int, *, folded: bool, single: bool) -> None:
        """Count a section of `size` bytes.

        `folded` says that its object folds, `single` that an earlier section is equal to it.
        """
        self.sections += 1
        self.bytes += size
        self.folded_sections += folded
        self.folded_bytes += size * folded
        self.single_sections += single
        self.single_bytes += size * single


@dataclass
class Candidate:
    """An object with Mercury sections, which may fold.

    `reference` is the earlier object that it folds into, None if it does not fold. `verdict` is the
    comparison with `reference`. Without one, it says how the object differs from the most similar
    earlier object that does not fold, or from the last of these if none has an equal section. It is
    None for the first object.
    """

    item: MercuryObject
    reference: MercuryObject | None
    verdict: Verdict | None

    @property
    def row(self) -> FoldRow:
        """The row of a table for this object."""
        item, reference = self.item, self.reference
        row = fold_row(item.name, None if reference is None else reference.name, self.verdict)
        return row._replace(sections=len(item.headers) + len(item.targets), size=item.size)


@dataclass(repr=False)
class Analysis:
    """The results for a build: objects, section families, and differences; also as tables.

    `candidates` are the objects with Mercury sections, in order, and `families` the sections of
    each section family, by its name.
    """

    candidates: list[Candidate]
    families: dict[str, FamilyRow]
    # Number of objects that each kind of difference keeps from folding (see `blocker_of`).
    blockers: Counter[str]
    # Number and bytes of Mercury sections that are never compared, by name.
    unlisted: dict[str, tuple[int, int]]
    stats: Stats  # the work of comparing
    # Bytes of all compared sections of the objects that fold.
    payload_bytes: int
    # Bytes by which folding shortens the output of a link of these objects; None if unknown.
    saved_bytes: int | None = None
    # Names of the objects without Mercury sections.
    without: list[str] = field(default_factory=list)

    @property
    def total(self) -> FamilyRow:
        """The sum of all families."""
        total = FamilyRow()
        for row in self.families.values():
            for name in vars(total):
                setattr(total, name, getattr(total, name) + getattr(row, name))
        return total

    @property
    def table(self) -> Table[FoldRow]:
        """A row for each cubin with Mercury sections: the cubin it folds into, or the reason."""
        return Table(FoldRow, (candidate.row for candidate in self.candidates))

    @property
    def family_table(self) -> Table[FamilySums]:
        """A row for each family of Mercury sections, with the sections and bytes that fold."""
        families = self.families.items()
        return Table(FamilySums, (FamilySums(name, *astuple(row)) for name, row in families))

    @property
    def blocker_table(self) -> Table[BlockerRow]:
        """A row for each kind of difference that keeps cubins from folding; most frequent first."""
        counted = self.blockers.most_common()
        return Table(
            BlockerRow, (BlockerRow(describe_blocker(name), count) for name, count in counted)
        )

    @property
    def summary(self) -> str:
        """A sentence: the number of objects that fold, and the bytes that this saves."""
        folded = sum(candidate.reference is not None for candidate in self.candidates)
        text = f"{folded} of {len(self.candidates)} objects fold"
        if self.saved_bytes is not None:
            text += f"; the output of a link loses {self.saved_bytes} bytes"
        elif folded:
            text += "; the bytes saved in an output are unknown, because these inputs do not link"
        if self.without:
            text += f"; {len(self.without)} without Mercury sections"
        return text

    def __repr__(self) -> str:
        return f"<Analysis: {self.summary}>"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the summary, the blockers, and the largest cubins."""
        return (
            f"<p>{escape(self.summary)}</p>"
            + (self.blocker_table._repr_html_() if self.blockers else "")
            + self.table.sorted_by("size", descending=True)._repr_html_()
            + "<p><code>.table</code>, <code>.family_table</code> and <code>.blocker_table</code> "
            "are tables.</p>"
        )


@dataclass
class _Rows:
    """The compared sections of the build, as columns with a row for each section.

    `owners` are numbers of objects, `titles` full names, `names` have the name without prefix and
    the alignment. `sections` are contents, `sizes` their bytes, and `relocations` the contents of
    the section's relocation section, empty without one. A capsule is the mercury form of a
    function's code. It begins with the section number of the function, which links rewrite, so
    `sections` has it without this number; `sizes` count the number.
    """

    owners: list[int] = field(default_factory=list)
    families: list[str] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    names: list[tuple[str, int]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    sections: list[Payload] = field(default_factory=list)
    relocations: list[Payload] = field(default_factory=list)


def analyze(
    objects: Sequence[MercuryObject],
    *,
    prefilter: str = "xxh3",
    identity: str = "symbols",
    progress: Callable[[int], None] | None = None,
    result: FoldResult | None = None,
) -> Analysis:
    """Fold the objects that have Mercury sections and explain the outcome.

    `prefilter` and `identity` are the options of `pylink dedup`. `result` is the result of folding
    `objects`, if it is known; then all of them must have Mercury sections. `progress` is called
    with the number of objects done.
    """
    items = [item for item in objects if item.headers or item.targets]
    if result is None:
        result = fold(items, prefilter=prefilter, identity=identity, progress=progress)
    rows = _make_rows(items)
    leaders = _find_leaders(rows, hashed=prefilter == "xxh3")
    families: dict[str, FamilyRow] = {}
    for row, owner in enumerate(rows.owners):
        folded = result.reference[owner] is not None
        single = leaders[row] != row
        sizes = [(rows.families[row], rows.sizes[row])]
        if rows.relocations[row]:
            sizes.append((RELOCATIONS, len(rows.relocations[row])))
        for family, size in sizes:
            families.setdefault(family, FamilyRow()).count(size, folded=folded, single=single)
    nearest = _find_nearest(rows, leaders, result.reference)
    candidates = []
    blockers: Counter[str] = Counter()
    for row, (item, earlier) in enumerate(zip(items, result.reference, strict=True)):
        verdict = result.verdicts[row]
        if earlier is None and row in nearest:
            other = items[nearest[row]]
            verdict = compare(other, item, prefilter=prefilter, identity=identity)
        if verdict is not None and verdict.reason_row != FoldOutcome.ACCEPTED:
            blockers[blocker_of(verdict)] += 1
        reference = None if earlier is None else items[earlier]
        candidates.append(Candidate(item, reference, verdict))
    without = [item.name for item in objects if not (item.headers or item.targets)]
    return Analysis(
        candidates,
        dict(sorted(families.items())),
        blockers,
        _sum_unlisted(items),
        result.stats,
        result.payload_bytes,
        without=without,
    )


@dataclass
class SectionTwin:
    """A section of object number `owner`, and the first section of the build that is equal to it.

    `leader` is the number of the object with that first section, None if it is this section. Equal
    sections have equal names without mercury prefix, alignments, bytes and relocations. `size` is
    in bytes, without the relocations. A relocation section counts as a section of its own only if
    the section that it is for is not compared.
    """

    owner: int
    name: str
    size: int
    leader: int | None


def section_twins(objects: Sequence[MercuryObject]) -> list[SectionTwin]:
    """List the compared sections of the objects, in order, each with the first that is equal."""
    rows = _make_rows(objects)
    leaders = _find_leaders(rows, hashed=True)
    return [
        SectionTwin(owner, title, size, None if leader == row else rows.owners[leader])
        for row, (owner, title, size, leader) in enumerate(
            zip(rows.owners, rows.titles, rows.sizes, leaders, strict=True)
        )
    ]


def blocker_of(verdict: Verdict) -> str:
    """Return the kind of difference, with the section family if known: `other bytes: debug_info`.

    The text is empty if the verdict accepts.
    """
    text, index = BLOCKERS[verdict.reason_row], verdict.index
    if index is None or verdict.symbol is not None:
        return text
    return f"{text}: {RELOCATIONS if verdict.stage == 3 else verdict.candidate.families[index]}"


def _sum_unlisted(items: Sequence[MercuryObject]) -> dict[str, tuple[int, int]]:
    """Return number and bytes of Mercury sections that are never compared, by name.

    Attributes of functions, `.nv.merc.nv.info.F`, count together as `.nv.merc.nv.info.*`.
    """
    unlisted: dict[str, tuple[int, int]] = {}
    for item in items:
        for name, size in item.unlisted:
            family = ".nv.merc.nv.info.*" if name.startswith(".nv.merc.nv.info.") else name
            count, total = unlisted.get(family, (0, 0))
            unlisted[family] = (count + 1, total + size)
    return dict(sorted(unlisted.items()))


def _make_rows(items: Sequence[MercuryObject]) -> _Rows:
    """List all compared sections of the objects, each with its relocations."""
    rows = _Rows()
    for owner, item in enumerate(items):
        # The relocations that no row has yet, by the name of their section without prefix.
        pending = {_relocated_section(name): data for name, data in item.targets}
        for (name, _, _, align), family, data in zip(
            item.headers, item.families, item.primary, strict=True
        ):
            rows.owners.append(owner)
            rows.families.append(family)
            rows.titles.append(show_name(name))
            rows.names.append((_without_prefix(show_name(name)), align))
            rows.sizes.append(len(data))
            rows.sections.append(data[NUMBER_SIZE:] if name.startswith(CAPSULE_PREFIX) else data)
            rows.relocations.append(pending.pop(_without_prefix(show_name(name)), b""))
        # Relocations of sections that are not compared.
        for short, data in pending.items():
            rows.owners.append(owner)
            rows.families.append(RELOCATIONS)
            rows.titles.append(f".nv.merc.rela{short}")
            rows.names.append((".rela" + short, 8))
            rows.sizes.append(len(data))
            rows.sections.append(data)
            rows.relocations.append(b"")
    return rows


def _without_prefix(name: str) -> str:
    """Return the name without its mercury prefix: `.debug_info` for `.nv.merc.debug_info`."""
    for prefix in (".nv.merc", ".nv.capmerc"):
        if name.startswith(prefix + "."):
            return name[len(prefix) :]
    return name


def _relocated_section(name: bytes) -> str:
    """Return the name without prefix of the section that a relocation section is for.

    It is `.debug_info` for `.nv.merc.rela.debug_info`.
    """
    return _without_prefix(show_name(name)).removeprefix(".rela")


def _find_leaders(rows: _Rows, *, hashed: bool) -> array.array[int]:
    """Return, for each row, the number of its leader: the first row that is equal to it.

    Only rows with equal names, alignments and sizes, also of their relocations, are compared. With
    `hashed`, their sections are hashed before, and only those with equal digests are compared.
    """
    # Numbers of the rows that may be equal, by name and alignment, and sizes.
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
    return array.array("q", find_twins(rows.sections, rows.relocations, keys).leaders)


def _find_nearest(
    rows: _Rows, leaders: array.array[int], reference: Sequence[int | None]
) -> dict[int, int]:
    """Return, by kept object, the earlier kept object that shares most bytes with it.

    Bytes are shared if they are in equal sections, i.e. those with one leader. For each section,
    only the first MAX_COMPARED earlier objects with an equal one count. An object without an equal
    section in any of these is omitted.
    `reference` has, by object, the number of the object that it folds into, or None if it is kept.
    """
    # By leader: the kept objects that have a section equal to it, in order.
    holders: defaultdict[int, list[int]] = defaultdict(list)
    # By kept object: the bytes that it shares with each earlier kept object.
    shared: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for row, owner in enumerate(rows.owners):
        if reference[owner] is None:
            earlier = holders[leaders[row]]
            for other in earlier[:MAX_COMPARED]:
                if other != owner:
                    shared[owner][other] += rows.sizes[row] + len(rows.relocations[row])
            earlier.append(owner)
    return {owner: counts.most_common(1)[0][0] for owner, counts in shared.items()}
