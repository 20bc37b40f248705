"""The profile of one link: a plain object with plain attributes.

Times are in nanoseconds, moments as of `time.perf_counter_ns`, sizes in bytes. None stands for
a value that the system did not provide.
"""

from __future__ import annotations

from pylink.profile.counts import NO_TIME, InputFile, RelocationType, SectionFamily
from pylink.profile.phase import Measured
from pylink.rowformats import FILE_COUNT, KIND_COUNT, TIME
from pylink.timing import NS_PER_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylink._native.counts import RelocationCount
    from pylink.facts.releases import Release
    from pylink.mercury.decisions import Decision
    from pylink.mercury.folding import FoldResult
    from pylink.mercury.stages import Verdict
    from pylink.profile.phase import Cost, Phase
    from pylink.profile.tables import ProfileTables


class Profile(Measured):
    """The costs of a link; iterating gives its phases, `profile["merge"]` is one of them.

    * `cost`: the cost of the whole link; `created`: its start in seconds since 1970.
    * `arch`, `sm`: the target, such as sm_90a, and its number.
    * `release`: the release of nvlink that the link follows; None if no cubins were linked.
    * `names`, `input_bytes`: the linked cubins, and their bytes together.
    * `opened_names`, `opened_bytes`: the inputs as given, such as archives, and their bytes.
    * `output`, `output_bytes`: the output file, None for a link in memory, and its size.
    * `parsing`, `reading`: times as a TIME row by cubin, and by opened file; None if unknown.
    * `folding`: the result of deduplication; None for a link without it.
    * `decisions`: for each cubin that deduplication compared, whether its sections are omitted.
    * `saved_bytes`: how much shorter deduplication made the output; None until a report is created.
    * `loading_ns`: the part of step fold_mercury that imported Python modules, once per process.
    * `file_counts`, `kind_counts`: FILE_COUNT and KIND_COUNT rows. From these, `files` and
      `families` are created at first use; `tables` has them with columns.
    """

    __slots__ = (
        "_families", "_files", "_sizes", "_types", "arch", "created", "decisions", "file_counts",
        "folding", "input_bytes", "kind_counts", "loading_ns", "names", "opened_bytes",
        "opened_names", "output", "output_bytes", "parsing", "phases", "reading", "release",
        "saved_bytes", "sm",
    )  # fmt: skip

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
        self._sizes: list[int] = []  # bytes of each of `names`
        self.file_counts = self.kind_counts = b""
        self.opened_names: list[str] = []
        self.reading: bytes | None = None
        self.parsing: bytes | None = None
        # Rows: the number of a relocation type, how many were applied, how many were emitted.
        self._types: list[tuple[int, int, int]] = []
        self._files: list[InputFile] | None = None
        self._families: list[SectionFamily] | None = None

    @property
    def opened(self) -> int:
        """The number of opened files."""
        return len(self.opened_names)

    def set_counts(
        self,
        sizes: list[int],
        file_counts: bytes,
        kind_counts: bytes,
        types: list[RelocationCount],
        parsing: bytes | None,
    ) -> None:
        """Set the counts by file, kind and relocation type, and the times of parsing.

        `sizes` are the bytes of each file of `names`. `parsing` is None if not measured.
        """
        self._sizes = sizes
        self.input_bytes = sum(sizes)
        self.file_counts = file_counts
        self.kind_counts = kind_counts
        self._types = types
        self.parsing = parsing

    @property
    def relocations_applied(self) -> int:
        return sum(applied for _, applied, _ in self._types)

    @property
    def relocations_kept(self) -> int:
        return sum(emitted for _, _, emitted in self._types)

    @property
    def files(self) -> list[InputFile]:
        """The linked cubins, in link order."""
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

        return [
            RelocationType(number, type_name(number), applied, emitted)
            for number, applied, emitted in self._types
        ]

    @property
    def pairs(self) -> list[Verdict]:
        """The comparisons of deduplication, in order; `stats` of each has its work."""
        return [] if self.folding is None else self.folding.compared

    @property
    def tables(self) -> ProfileTables:
        """The profile as tables: steps, files, families, relocations, folds."""
        from pylink.profile.tables import ProfileTables

        return ProfileTables(self)

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: time by phase, the slowest steps."""
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
        return f"<Profile {self.arch} {self.wall_ns / NS_PER_MS:.3f} ms, {len(self.names)} inputs>"
