"""A profile as tables: the costs of phases, steps and cubins, and decisions of deduplication."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

from pylink.mercury.rows import FoldRow, decision_row
from pylink.tabular.columns import Milliseconds, Place, SharedMilliseconds, Size
from pylink.tabular.page import bars_html
from pylink.tabular.table import Table
from pylink.timing import NS_PER_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Protocol

    from pylink.mercury.decisions import Decision
    from pylink.profile.counts import InputFile, RelocationType, SectionFamily
    from pylink.profile.phase import Phase, Step

    class ProfileSource(Protocol):
        """The attributes of a profile that its tables use."""

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


class StepRow(NamedTuple):
    """A step of a phase; a row without a step is the whole phase.

    `items` is the number of items that it worked on, and `counted` names them, such as symbols.
    `peak` is the peak memory of the process at the end of the step.
    """

    phase: str
    step: str | None
    wall: SharedMilliseconds
    cpu: SharedMilliseconds
    items: int
    counted: str
    page_faults: int
    peak: Place


class FileRow(NamedTuple):
    """A linked cubin, which may come from an archive or a fat binary.

    `kept` counts bytes of its sections that reached the image, `folded` bytes of sections that an
    earlier input's sections replace. Times are for reading and for parsing the file.
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
    """The sections of one kind, such as `.text.*`: inputs, outputs and discarded bytes."""

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
    """The relocations of one type: how many were applied, and how many remain in the image."""

    number: int
    name: str
    applied: int
    kept: int


class ProfileTables:
    """A profile as tables, each of which is created when it is used."""

    __slots__ = ("_profile",)

    def __init__(self, profile: ProfileSource) -> None:
        self._profile = profile

    @property
    def steps(self) -> Table[StepRow]:
        """A row for each phase and each of its steps, in order."""
        return Table(StepRow, (row for phase in self._profile.phases for row in _step_rows(phase)))

    @property
    def files(self) -> Table[FileRow]:
        """A row for each cubin that was linked, in link order."""
        return Table(FileRow, map(_file_row, self._profile.files))

    @property
    def families(self) -> Table[FamilyRow]:
        """A row for each kind of section that occurs."""
        return Table(FamilyRow, map(_family_row, self._profile.families))

    @property
    def relocations(self) -> Table[TypeRow]:
        """A row for each relocation type that occurs, by number."""
        types = self._profile.relocations
        return Table(
            TypeRow, (TypeRow(row.number, row.name, row.applied, row.kept) for row in types)
        )

    @property
    def folds(self) -> Table[FoldRow]:
        """A row for each cubin that deduplication compared; no rows if it was off."""
        names = self._profile.names
        return Table(
            FoldRow, (decision_row(decision, names) for decision in self._profile.decisions)
        )

    def __repr__(self) -> str:
        return "<ProfileTables: steps, files, families, relocations, folds>"


def _step_rows(phase: Phase) -> Iterator[StepRow]:
    """Yield the row of a phase, and those of its steps."""
    yield _step_row(phase.tag, None, phase)
    for step in phase.steps:
        yield _step_row(phase.tag, step.name, step)


def _step_row(phase: str, name: str | None, measured: Phase | Step) -> StepRow:
    """Return the row of a phase (`name` None) or of its step `name`; `measured` is that object."""
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


def _file_row(file: InputFile) -> FileRow:
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


def _family_row(family: SectionFamily) -> FamilyRow:
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


def profile_html(profile: ProfileSource) -> str:
    """Return HTML for a notebook: a bar for each phase, the slowest steps, and how to get more."""
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
