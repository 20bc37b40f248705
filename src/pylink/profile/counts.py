"""The counts of a profile by input, section family and relocation type."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# The TIME row of a file whose time was not measured: start, wall time, processor time, and number
# of the helper thread.
NO_TIME = (0, 0, 0, 0)


def column(table: bytes, row_size: int, number: int) -> memoryview[int]:
    """Return column `number` of a table of uint64 numbers whose rows have `row_size` bytes."""
    return memoryview(table).cast("Q")[number :: row_size // 8]


class InputFile:
    """A linked cubin: its contents, how much reached the output, and the time of reading it.

    `size` and names with `_bytes` are bytes; `defined`, `undefined`, `weak` and `functions` count
    symbols. `kept_sections` and `kept_bytes` reached the output. `folded_bytes` counts Mercury
    sections that an earlier input's sections replace. `lane` is 0 if the thread of the link read
    the file, else the number of the helper thread. Starts are as of `time.perf_counter_ns`.
    """

    __slots__ = (
        "debug_bytes", "defined", "folded_bytes", "functions", "kept_bytes", "kept_sections",
        "lane", "name", "parse_ns", "parse_start_ns", "read_cpu_ns", "read_ns", "read_start_ns",
        "relocations", "sections", "size", "symbols", "undefined", "weak",
    )  # fmt: skip

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
    """All sections of one kind, such as `.text.*`, and the relocations that change them.

    `kind` is its number in `facts.sectionkinds`. `copied_bytes` were copied to the output.
    `folded_bytes` are omitted since an earlier input has the same, `discarded_bytes` for any other
    reason. `relocations_applied` changed bytes, `relocations_kept` were written to the output.
    """

    __slots__ = (
        "copied_bytes", "discarded_bytes", "folded_bytes", "input_bytes", "input_sections",
        "kept_sections", "kind", "name", "output_bytes", "output_sections", "relocations_applied",
        "relocations_kept",
    )  # fmt: skip

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
    """All relocations of one type: `applied` changed bytes, `kept` were written to the output."""

    __slots__ = ("applied", "kept", "name", "number")

    def __init__(self, number: int, name: str, applied: int, kept: int) -> None:
        self.number = number
        self.name = name
        self.applied = applied
        self.kept = kept

    def __repr__(self) -> str:
        return f"<RelocationType {self.name} {self.applied} applied, {self.kept} kept>"
