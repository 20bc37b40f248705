"""The profile of one link: plain objects with plain attributes.

Times are nanoseconds, moments those of `time.perf_counter_ns`, sizes bytes. None stands for what
the system did not tell.
"""

from __future__ import annotations

from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pylink.dedup.folding import FoldResult
    from pylink.dedup.stages import Verdict

# Rows of pylink._native.counts and of the times that kernels keep, see their stubs.
FILE_COUNT = Struct("<11Q")
KIND_COUNT = Struct("<10Q")
TIME = Struct("<4Q")

NO_TIME = (0, 0, 0, 0)


def column(table: bytes, row: int, place: int) -> memoryview[int]:
    """Every uint64 number `place` of rows of `row` bytes."""
    return memoryview(table).cast("Q")[place :: row // 8]


class Cost:
    """What a stretch of time took; `peak_bytes` is the process's peak at its end.

    `disk_bytes` are those that the process waited for because no cache had them.
    """

    __slots__ = (
        "cpu_ns",
        "cycles",
        "disk_bytes",
        "instructions",
        "major_faults",
        "minor_faults",
        "peak_bytes",
        "start_ns",
        "wall_ns",
    )

    def __init__(
        self,
        start_ns: int = 0,
        wall_ns: int = 0,
        cpu_ns: int = 0,
        minor_faults: int = 0,
        major_faults: int = 0,
        peak_bytes: int = 0,
        disk_bytes: int = 0,
        cycles: int | None = None,
        instructions: int | None = None,
    ) -> None:
        self.start_ns = start_ns
        self.wall_ns = wall_ns
        self.cpu_ns = cpu_ns
        self.minor_faults = minor_faults
        self.major_faults = major_faults
        self.peak_bytes = peak_bytes
        self.disk_bytes = disk_bytes
        self.cycles = cycles
        self.instructions = instructions


class Step:
    """One step of a phase: `size` counts what it works on, in `unit`."""

    __slots__ = ("cost", "name", "size", "unit")

    def __init__(self, name: str, cost: Cost) -> None:
        self.name = name
        self.cost = cost
        self.size = 0
        self.unit = "items"

    def __repr__(self) -> str:
        return f"<Step {self.name} {self.cost.wall_ns / 1e6:.3f} ms>"


class Phase:
    """One phase, with what passed through it.

    `relocations` are those that it looked at, of which `relocations_applied` changed bytes and
    `relocations_kept` went to the output.
    """

    __slots__ = (
        "bytes_compared",
        "bytes_copied",
        "bytes_hashed",
        "bytes_read",
        "bytes_written",
        "cost",
        "relocations",
        "relocations_applied",
        "relocations_kept",
        "sections",
        "size",
        "steps",
        "symbols",
        "tag",
        "unit",
    )

    def __init__(self, tag: str, cost: Cost, steps: list[Step]) -> None:
        self.tag = tag
        self.cost = cost
        self.steps = steps
        self.size = 0
        self.unit = "bytes"
        self.bytes_read = self.bytes_copied = self.bytes_compared = 0
        self.bytes_hashed = self.bytes_written = 0
        self.sections = self.symbols = 0
        self.relocations = self.relocations_applied = self.relocations_kept = 0

    @property
    def wall_ns(self) -> int:
        return self.cost.wall_ns

    @property
    def cpu_ns(self) -> int:
        return self.cost.cpu_ns

    def __repr__(self) -> str:
        return f"<Phase {self.tag} {self.wall_ns / 1e6:.3f} ms>"


class InputFile:
    """One input: what it holds, what of it reached the output, what reading it took.

    `lane` is 0 where the thread of the link read it and 1 where its helper did; `folded_bytes` are
    those of Mercury sections that an earlier input's stand for.
    """

    __slots__ = (
        "debug_bytes",
        "defined",
        "folded_bytes",
        "functions",
        "kept_bytes",
        "kept_sections",
        "lane",
        "name",
        "parse_ns",
        "parse_start_ns",
        "read_cpu_ns",
        "read_ns",
        "read_start_ns",
        "relocations",
        "sections",
        "size",
        "symbols",
        "undefined",
        "weak",
    )

    def __init__(
        self,
        name: str,
        size: int,
        counts: Sequence[int],
        reading: Sequence[int],
        parsing: Sequence[int],
    ) -> None:
        self.name = name
        self.size = size
        (
            self.sections,
            self.symbols,
            self.defined,
            self.undefined,
            self.weak,
            self.functions,
            self.relocations,
            self.debug_bytes,
            self.kept_sections,
            self.kept_bytes,
            self.folded_bytes,
        ) = counts
        self.read_start_ns, self.read_ns, self.read_cpu_ns, self.lane = reading
        self.parse_start_ns, self.parse_ns, *_ = parsing

    def __repr__(self) -> str:
        return f"<InputFile {self.name} {self.size} bytes>"


class SectionFamily:
    """All sections of one kind, such as `.text.*`; relocations are those that change them."""

    __slots__ = (
        "copied_bytes",
        "discarded_bytes",
        "folded_bytes",
        "input_bytes",
        "input_sections",
        "kept_sections",
        "kind",
        "name",
        "output_bytes",
        "output_sections",
        "relocations_applied",
        "relocations_kept",
    )

    def __init__(self, kind: int, name: str, counts: Sequence[int]) -> None:
        self.kind = kind
        self.name = name
        (
            self.input_sections,
            self.input_bytes,
            self.kept_sections,
            self.discarded_bytes,
            self.folded_bytes,
            self.output_sections,
            self.output_bytes,
            self.copied_bytes,
            self.relocations_applied,
            self.relocations_kept,
        ) = counts

    def __repr__(self) -> str:
        return f"<SectionFamily {self.name} {self.input_sections} sections>"


class RelocationType:
    """All relocations of one type."""

    __slots__ = ("applied", "kept", "name", "number")

    def __init__(self, number: int, name: str, applied: int, kept: int) -> None:
        self.number = number
        self.name = name
        self.applied = applied
        self.kept = kept

    def __repr__(self) -> str:
        return f"<RelocationType {self.name} {self.applied} applied, {self.kept} kept>"


class Profile:
    """What a link cost; iterating gives its phases, `profile["merge"]` one of them.

    `cost` is that of the whole link. `names` are the cubins that were linked and `opened_names`
    the files that they came in; `parsing` and `reading` have a TIME row for each of these.
    `folding` is what deduplication did, None for a link without it. `files`, `families` and
    `relocations` are made when first asked for, of `file_counts` and `kind_counts` (FILE_COUNT and
    KIND_COUNT rows).
    """

    __slots__ = (
        "_families",
        "_files",
        "_sizes",
        "_types",
        "arch",
        "cost",
        "created",
        "file_counts",
        "folding",
        "input_bytes",
        "kind_counts",
        "names",
        "opened_bytes",
        "opened_names",
        "output",
        "output_bytes",
        "parsing",
        "phases",
        "reading",
        "sm",
    )

    def __init__(self, arch: str, sm: int, cost: Cost, phases: list[Phase]) -> None:
        self.arch = arch
        self.sm = sm
        self.cost = cost
        self.phases = phases
        self.created = 0.0
        self.names: list[str] = []
        self.opened_bytes = self.input_bytes = 0
        self.output: str | None = None
        self.output_bytes = 0
        self.folding: FoldResult | None = None
        self._sizes: list[int] = []
        self.file_counts = self.kind_counts = b""
        self.opened_names: list[str] = []
        self.reading: bytes | None = None
        self.parsing: bytes | None = None
        self._types: list[tuple[int, int, int]] = []
        self._files: list[InputFile] | None = None
        self._families: list[SectionFamily] | None = None

    @property
    def opened(self) -> int:
        return len(self.opened_names)

    def hold(
        self,
        sizes: list[int],
        file_counts: bytes,
        kind_counts: bytes,
        types: list[tuple[int, int, int]],
        parsing: bytes | None,
    ) -> None:
        """Take the counts by file, kind and relocation type, and the times of parsing."""
        self._sizes = sizes
        self.input_bytes = sum(sizes)
        self.file_counts = file_counts
        self.kind_counts = kind_counts
        self._types = types
        self.parsing = parsing

    @property
    def relocations_applied(self) -> int:
        return sum(row[1] for row in self._types)

    @property
    def relocations_kept(self) -> int:
        return sum(row[2] for row in self._types)

    @property
    def files(self) -> list[InputFile]:
        if self._files is None:
            count = len(self.names)
            counts = FILE_COUNT.iter_unpack(self.file_counts)
            reading, parsing = (
                [NO_TIME] * count
                if table is None or len(table) != TIME.size * count
                else TIME.iter_unpack(table)
                for table in (self.reading, self.parsing)
            )
            self._files = [
                InputFile(*row)
                for row in zip(self.names, self._sizes, counts, reading, parsing, strict=True)
            ]
        return self._files

    @property
    def families(self) -> list[SectionFamily]:
        """The kinds of sections that occur."""
        if self._families is None:
            from pylink.profile.families import family_name  # noqa: PLC0415 -- when looked at

            rows = enumerate(KIND_COUNT.iter_unpack(self.kind_counts))
            self._families = [
                SectionFamily(kind, family_name(kind), row) for kind, row in rows if any(row)
            ]
        return self._families

    @property
    def relocations(self) -> list[RelocationType]:
        """The relocation types that occur, by number."""
        from pylink.profile.families import type_name  # noqa: PLC0415 -- when looked at

        return [RelocationType(row[0], type_name(row[0]), row[1], row[2]) for row in self._types]

    @property
    def pairs(self) -> list[Verdict]:
        """The comparisons of deduplication, in order; `stats` of each has its work."""
        return [] if self.folding is None else self.folding.compared

    @property
    def wall_ns(self) -> int:
        return self.cost.wall_ns

    @property
    def cpu_ns(self) -> int:
        return self.cost.cpu_ns

    def __iter__(self) -> Iterator[Phase]:
        return iter(self.phases)

    def __len__(self) -> int:
        return len(self.phases)

    def __getitem__(self, tag: str) -> Phase:
        for phase in self.phases:
            if phase.tag == tag:
                return phase
        raise KeyError(tag)

    def __repr__(self) -> str:
        return f"<Profile {self.arch} {self.wall_ns / 1e6:.3f} ms, {len(self.names)} inputs>"
