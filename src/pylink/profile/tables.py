"""A profile as tables: what each phase, step and cubin cost, and what deduplication decided."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, NamedTuple

from pylink.mercury.rows import FoldRow, decision_row
from pylink.tabular.columns import Lap, Milliseconds, Place, Size
from pylink.tabular.page import bars_html
from pylink.tabular.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Protocol

    from pylink.mercury.decisions import Decision
    from pylink.profile.counts import InputFile, RelocationType, SectionFamily
    from pylink.profile.phase import Phase, Step

    class Source(Protocol):
        """What a profile is to its tables."""

        arch: str
        phases: list[Phase]
        names: list[str]
        decisions: list[Decision]
        output_bytes: int

        @property
        def wall_ns(self) -> int: ...
        @property
        def files(self) -> Sequence[InputFile]: ...
        @property
        def families(self) -> Sequence[SectionFamily]: ...
        @property
        def relocations(self) -> Sequence[RelocationType]: ...


NS_PER_MS = 1e6


class StepRow(NamedTuple):
    """A step of a phase; the row without a step is the phase as a whole.

    `items` are what it worked on, such as symbols, and `counted` says which. `peak` is the peak
    memory of the process at the end.
    """

    phase: str
    step: str | None
    wall: Lap
    cpu: Lap
    items: int
    counted: str
    page_faults: int
    peak: Place


class FileRow(NamedTuple):
    """A cubin that was linked, also one out of an archive or a fat binary.

    `kept` and `folded` are the bytes of its sections that reached the image, and of those that an
    earlier input's stand for. Times are those of reading the file and of parsing it.
    """

    name: str
    size: Size
    sections: int
    symbols: int
    defined: int
    undefined: int
    functions: int
    relocations: int
    debug: Size
    kept: Size
    folded: Size
    read: Milliseconds
    parse: Milliseconds


class FamilyRow(NamedTuple):
    """The sections of one kind, such as `.text.*`: what came in, and what became of it."""

    name: str
    input_sections: int
    input_size: Size
    output_sections: int
    output_size: Size
    discarded: Size
    folded: Size
    copied: Size
    relocations_applied: int
    relocations_kept: int


class TypeRow(NamedTuple):
    """The relocations of one type: how many were applied, and how many stay in the image."""

    number: int
    name: str
    applied: int
    kept: int


class ProfileTables:
    """What a profile has, as tables; each is made when it is asked for."""

    __slots__ = ("_profile",)

    def __init__(self, profile: Source) -> None:
        self._profile = profile

    @property
    def steps(self) -> Table[StepRow]:
        """A row for each phase and each of its steps, in order."""
        return Table(StepRow, (row for phase in self._profile.phases for row in _steps(phase)))

    @property
    def files(self) -> Table[FileRow]:
        """A row for each cubin that was linked, in link order."""
        return Table(FileRow, map(_file, self._profile.files))

    @property
    def families(self) -> Table[FamilyRow]:
        """A row for each kind of section that occurs."""
        return Table(FamilyRow, map(_family, self._profile.families))

    @property
    def relocations(self) -> Table[TypeRow]:
        """A row for each relocation type that occurs, by number."""
        types = self._profile.relocations
        return Table(
            TypeRow, (TypeRow(each.number, each.name, each.applied, each.kept) for each in types)
        )

    @property
    def folds(self) -> Table[FoldRow]:
        """A row for each cubin that deduplication compared; without `merc_dedup` there is none."""
        names = self._profile.names
        return Table(FoldRow, (decision_row(each, names) for each in self._profile.decisions))

    def __repr__(self) -> str:
        return "<ProfileTables: steps, files, families, relocations, folds>"


def _steps(phase: Phase) -> Iterator[StepRow]:
    yield _step(phase.tag, None, phase)
    for step in phase.steps:
        yield _step(phase.tag, step.name, step)


def _step(phase: str, name: str | None, measured: Phase | Step) -> StepRow:
    cost = measured.cost
    return StepRow(
        phase,
        name,
        cost.wall_ns / NS_PER_MS,
        cost.cpu_ns / NS_PER_MS,
        measured.size,
        measured.unit,
        cost.minor_faults + cost.major_faults,
        cost.peak_bytes,
    )


def _file(file: InputFile) -> FileRow:
    return FileRow(
        file.name,
        file.size,
        file.sections,
        file.symbols,
        file.defined,
        file.undefined,
        file.functions,
        file.relocations,
        file.debug_bytes,
        file.kept_bytes,
        file.folded_bytes,
        file.read_ns / NS_PER_MS,
        file.parse_ns / NS_PER_MS,
    )


def _family(family: SectionFamily) -> FamilyRow:
    return FamilyRow(
        family.name,
        family.input_sections,
        family.input_bytes,
        family.output_sections,
        family.output_bytes,
        family.discarded_bytes,
        family.folded_bytes,
        family.copied_bytes,
        family.relocations_applied,
        family.relocations_kept,
    )


def profile_html(profile: Source) -> str:
    """What a notebook shows: a bar for each phase, the slowest steps, how to get the rest."""
    tables = ProfileTables(profile)
    title = (
        f"<b>{escape(profile.arch)}</b>: {len(profile.names):,} cubins, "
        f"{profile.output_bytes:,} bytes, {profile.wall_ns / NS_PER_MS:.1f} ms"
    )
    phases = {phase.tag: phase.wall_ns / NS_PER_MS for phase in profile.phases}
    steps = tables.steps.where(lambda row: row.step is not None)
    return (
        f"<p>{title}</p>{bars_html(phases)}<p>Slowest steps</p>"
        f"{steps.sorted_by('wall', descending=True)._repr_html_()}"
        "<p><code>.tables</code> has <code>steps</code>, <code>files</code>, "
        "<code>families</code>, <code>relocations</code> and <code>folds</code>.</p>"
    )
