"""Phase read: checked tables of all cubins."""

from __future__ import annotations

from pylink._native import elfread, notes
from pylink.phases.faults import report_fault
from pylink.tables import FILE
from pylink.tables import rows as table_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.inputs.loaded import Loaded
    from pylink.inputs.pieces import Piece
    from pylink.inputs.references import References
    from pylink.inputs.sharedlib import Libraries
    from pylink.locate.places import Places
    from pylink.phases.init import Job


class Objects:
    """The inputs: `arena` holds their bytes; the tables are packed FileRow, SectionRow, SymbolRow.

    `names` are the inputs' names by file number, `pieces` what is known of each beyond its bytes,
    empty for a link of plain cubins. `references` are the kernels that host code uses,
    None unless all others are removed. `libraries` are the shared libraries with device code, if
    there are any. `places` are what diagnostics found out.
    """

    __slots__ = (
        "arena",
        "files",
        "job",
        "libraries",
        "names",
        "pieces",
        "places",
        "references",
        "sections",
        "symbols",
    )

    def __init__(
        self,
        job: Job,
        names: list[str],
        arena: bytes,
        files: bytes,
        sections: bytes,
        symbols: bytes,
        pieces: list[Piece],
        references: References | None,
    ) -> None:
        self.job = job
        self.names = names
        self.arena = arena
        self.files = files
        self.sections = sections
        self.symbols = symbols
        self.pieces = pieces
        self.references = references
        self.libraries: Libraries | None = None
        self.places: Places | None = None


def read(loaded: Loaded, sink: Sink) -> Objects | None:
    """Check and tabulate every cubin; after errors the result is None."""
    job, names, arena = loaded.job, loaded.names, loaded.arena
    times = job.steps.times(len(names))
    files, sections, symbols, fault = elfread.parse(arena, loaded.extents, times)
    job.steps.done("parse", times)
    if fault:
        report_fault(fault, arena, files, sections, loaded.extents, names, job, sink)
        return None
    specific = notes.specific_files(arena, sections, len(names))
    _check_targets(job, names, files, specific, sink)
    job.steps.done("check_targets")
    objects = Objects(job, names, arena, files, sections, symbols, loaded.pieces, loaded.references)
    objects.libraries = loaded.libraries
    return objects


def _check_targets(job: Job, names: list[str], files: bytes, specific: bytes, sink: Sink) -> None:
    """Refuse inputs that the target cannot run."""
    for number, row in enumerate(table_rows(files, FILE)):
        sm = row[7] >> 8 & 0xFF
        if job.target.accepts(sm, bool(specific[number])):
            continue
        if job.target.limits(sm):
            sink.report("output-limited", file=names[number], arch=str(job.target.sm))
        from pylink.diagnostics.record import note  # noqa: PLC0415 -- an error

        suffix = "a" if specific[number] else ""
        hint = note("archs-differ", archs=f"sm_{sm}{suffix}", arch=job.options.arch)
        sink.fatal("arch-mismatch", file=names[number], arch=job.options.arch, hints=[hint])
