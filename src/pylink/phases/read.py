"""Phase read: checked tables of all cubins."""

from __future__ import annotations

from struct import unpack_from

from pylink._native import elfread, notes
from pylink.facts.releases import NEWEST, followed
from pylink.phases.faults import report_fault
from pylink.tables import FILE
from pylink.tables import rows as table_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from pylink.diagnostics import Sink
    from pylink.facts.releases import Release
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
    there are any. `places` are what diagnostics found out. `release` is that of the nvlink that the
    output is equal to.
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
        "release",
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
        release: Release,
    ) -> None:
        self.job = job
        self.names = names
        self.arena = arena
        self.files = files
        self.sections = sections
        self.symbols = symbols
        self.pieces = pieces
        self.references = references
        self.release = release
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
    newest, toolkits = notes.toolkits(arena, files, sections)
    release = followed(job.options.nvlink_version, newest)
    _check_targets(job, names, files, specific, toolkits, release, sink)
    job.steps.done("check_targets")
    objects = Objects(
        job, names, arena, files, sections, symbols, loaded.pieces, loaded.references, release
    )
    objects.libraries = loaded.libraries
    return objects


def _check_targets(
    job: Job,
    names: list[str],
    files: bytes,
    specific: bytes,
    toolkits: bytes,
    release: Release,
    sink: Sink,
) -> None:
    """Refuse inputs that the target cannot run, and those of a toolkit newer than the release."""
    for number, row in enumerate(table_rows(files, FILE)):
        sm = row[7] >> 8 & 0xFF
        if not job.target.accepts(sm, bool(specific[number])):
            _refuse_target(job, names[number], sm, bool(specific[number]), sink)
        (toolkit,) = unpack_from("<I", toolkits, 4 * number)
        if toolkit > release.toolkit:
            _refuse_toolkit(job, names[number], toolkit, release, sink)


def _refuse_target(job: Job, name: str, sm: int, specific: bool, sink: Sink) -> NoReturn:
    from pylink.diagnostics.record import note  # noqa: PLC0415 -- an error

    if job.target.limits(sm):
        sink.report("output-limited", file=name, arch=str(job.target.sm))
    suffix = "a" if specific else ""
    hint = note("archs-differ", archs=f"sm_{sm}{suffix}", arch=job.options.arch)
    sink.fatal("arch-mismatch", file=name, arch=job.options.arch, hints=[hint])


def _refuse_toolkit(job: Job, name: str, toolkit: int, release: Release, sink: Sink) -> None:
    """Refuse what nvlink refuses, in its words; warn of a release that nobody knows yet.

    Without --nvlink-version only such a release is newer than the one followed.
    """
    from pylink.diagnostics.record import note  # noqa: PLC0415 -- an error

    made = f"{toolkit // 10}.{toolkit % 10}"
    if toolkit > NEWEST.toolkit and job.options.nvlink_version:
        sink.report("unknown-toolkit", file=name, made=made, release=release.name)
        return
    if toolkit > NEWEST.toolkit:
        hint = note("newest-release", made=made, release=NEWEST.name)
    else:
        hint = note("older-release", made=made, release=release.name)
    sink.fatal(
        "newer-toolkit", file=name, toolkit=str(toolkit), ours=str(release.toolkit), hints=[hint]
    )
