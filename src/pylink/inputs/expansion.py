"""From inputs to sources: archives stand for their members, shared libraries for their modules."""

from __future__ import annotations

from pylink.inputs import kinds
from pylink.inputs.sources import Sources
from pylink.options.plan import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pylink.diagnostics import Sink
    from pylink.inputs.sharedlib import Libraries
    from pylink.inputs.sources import Run, Source
    from pylink.options.model import Input
    from pylink.options.plan import Identity
    from pylink.phases.init import Job

_ARCHIVES = (kinds.ARCHIVE, kinds.THIN_ARCHIVE)
# What may be other than its first bytes say.
_LOOKED_INTO = (*_ARCHIVES, kinds.HOST, kinds.UNKNOWN)

E_TYPE, ET_DYN = 16, b"\3\0"  # where an ELF file has its type


def find_sources(job: Job, runs: Sequence[Run], sink: Sink) -> tuple[Sources, Libraries | None]:
    """The inputs of the link, which lie in these runs, with members in the place of archives."""
    sources = Sources()
    libraries: Libraries | None = None
    archives: set[Identity] = set()
    before = 0  # inputs of earlier runs
    for inputs in runs:
        sources.size += sum(memoryview(inputs.extents).cast("Q")[1::2])
        first = 0
        starts = memoryview(inputs.extents).cast("Q")[::2]
        for number, kind in enumerate(inputs.kinds):
            if kind not in _LOOKED_INTO:
                continue
            # Most inputs are such, and making a `Source` of each takes longer than all else here.
            if kind == kinds.HOST and not _is_dynamic(inputs.arena, starts[number]):
                continue
            source_input, source = job.inputs[before + number], inputs[number]
            if kind not in _ARCHIVES and not is_shared(source):
                continue
            sources.add(inputs.part(first, number))
            first = number + 1
            if kind in _ARCHIVES:
                for run in find_members(job, source_input, source, archives, sink):
                    sources.add(run, group=before + number + 1)
                continue
            from pylink.inputs.sharedlib import Libraries

            libraries = libraries or Libraries()
            library = libraries.take(source, source_input.library, len(sources), sink)
            if library is not None:
                sources.libraries[len(sources)] = library
                sources.add(inputs.as_library(number))
        sources.add(inputs.part(first, len(inputs.names)))
        before += len(inputs.names)
    return sources, libraries


def is_shared(source: Source) -> bool:
    """Whether nvlink ignores an input of the command line.

    It does for ELF files of the type of shared libraries and of programs, and for texts that
    linkers of the host read in the place of a library.
    """
    if source.kind == kinds.UNKNOWN:
        return source.name.endswith(".so")
    return (
        source.kind == kinds.HOST
        and _is_dynamic(source.arena, source.offset)
        and not source.name.endswith(".cubin")  # which must be for the device
    )


def _is_dynamic(arena: bytes, offset: int) -> bool:
    """Whether an ELF file has the type of shared libraries."""
    return arena[offset + E_TYPE : offset + E_TYPE + 2] == ET_DYN


def find_members(
    job: Job, source_input: Input, archive: Source, before: set[Identity], sink: Sink
) -> Iterator[Run]:
    """The members of an archive with code, in its order; nothing of a file that came `before`."""
    from pylink.inputs.archive import members

    file = identity(source_input.name) if source_input.data is None else None
    if file in before:
        return iter(())
    if file is not None:
        before.add(file)
    options = job.options
    return members(
        archive,
        job.plan,
        sink,
        lazy=options.lazy_archives,
        whole=source_input.whole or options.whole_archive,
        overlooked=source_input.skipped is not None,
    )
