"""The profile of one link: a plain object with plain attributes.

Times are nanoseconds, moments those of `time.perf_counter_ns`, sizes bytes. None stands for what
the system did not tell.
"""

from __future__ import annotations

from pylink.profile.counts import NO_TIME, InputFile, RelocationType, SectionFamily
from pylink.profile.phase import Measured
from pylink.rowformats import FILE_COUNT, KIND_COUNT, TIME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylink.facts.releases import Release
    from pylink.mercury.decisions import Decision
    from pylink.mercury.folding import FoldResult
    from pylink.mercury.stages import Verdict
    from pylink.profile.phase import Cost, Phase
    from pylink.profile.tables import ProfileTables


class Profile(Measured):
    """What a link cost; iterating gives its phases, `profile["merge"]` one of them.

    `cost` is that of the whole link. `names` are the cubins that were linked and `opened_names`
    the files that they came in; `parsing` and `reading` have a TIME row for each of these.
    `folding` is what deduplication did, None for a link without it; `saved_bytes` is what the
    output lost by that, known once a report was made, and `loading_ns` what loading the modules
    that compare took of step fold_mercury, once a process. `decisions` are what came of `folding`.
    `files`, `families` and `relocations` are made when first asked for, of `file_counts` and
    `kind_counts` (FILE_COUNT and KIND_COUNT rows); `tables` has all of it with columns. `release`
    is that of the linker followed, None where no cubins were linked.
    """

    __slots__ = (
        "_families",
        "_files",
        "_sizes",
        "_types",
        "arch",
        "created",
        "decisions",
        "file_counts",
        "folding",
        "input_bytes",
        "kind_counts",
        "loading_ns",
        "names",
        "opened_bytes",
        "opened_names",
        "output",
        "output_bytes",
        "parsing",
        "phases",
        "reading",
        "release",
        "saved_bytes",
        "sm",
    )

    def __init__(self, arch: str, sm: int, cost: Cost, phases: list[Phase]) -> None:
        super().__init__(cost)
        self.arch = arch
        self.sm = sm
        self.phases = phases
        self.created = 0.0
        self.names: list[str] = []
        self.opened_bytes = self.input_bytes = 0
        self.output: str | None = None
        self.release: Release | None = None
        self.output_bytes = 0
        self.folding: FoldResult | None = None
        self.decisions: list[Decision] = []
        self.saved_bytes: int | None = None
        self.loading_ns = 0
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
            from pylink.profile.families import family_name

            rows = enumerate(KIND_COUNT.iter_unpack(self.kind_counts))
            self._families = [
                SectionFamily(kind, family_name(kind), row) for kind, row in rows if any(row)
            ]
        return self._families

    @property
    def relocations(self) -> list[RelocationType]:
        """The relocation types that occur, by number."""
        from pylink.profile.families import type_name

        return [RelocationType(row[0], type_name(row[0]), row[1], row[2]) for row in self._types]

    @property
    def pairs(self) -> list[Verdict]:
        """The comparisons of deduplication, in order; `stats` of each has its work."""
        return [] if self.folding is None else self.folding.compared

    @property
    def tables(self) -> ProfileTables:
        """What it has as tables: steps, files, families, relocations, folds."""
        from pylink.profile.tables import ProfileTables

        return ProfileTables(self)

    def _repr_html_(self) -> str:
        """What a notebook shows: time by phase, the slowest steps."""
        from pylink.profile.tables import profile_html

        return profile_html(self)

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
