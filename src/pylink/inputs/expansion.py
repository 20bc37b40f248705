"""Makes the sources of a link from its inputs: archives become their members."""

from __future__ import annotations

from pylink.facts import inputkinds
from pylink.facts.elf import ET_DYN
from pylink.inputs.sources import Sources
from pylink.options.plan import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pylink.diagnostics import Sink
    from pylink.inputs.sharedlib import Libraries
    from pylink.inputs.sources import Source, SourceBatch
    from pylink.options.model import Input
    from pylink.options.plan import Identity
    from pylink.phases.init import Job

_ARCHIVES = (inputkinds.ARCHIVE, inputkinds.THIN_ARCHIVE)
# Kinds of inputs that need a closer look than at their first bytes.
_AMBIGUOUS = (*_ARCHIVES, inputkinds.HOST, inputkinds.UNKNOWN)

E_TYPE = 16  # offset of the type in an ELF file


def find_sources(
    job: Job, batches: Sequence[SourceBatch], sink: Sink
) -> tuple[Sources, Libraries | None]:
    """Return the sources of a link, with members in place of archives, and its shared libraries.

    `batches` are the inputs of the link. Without shared libraries, the second result may be None.
    """
    sources = Sources()
    libraries: Libraries | None = None
    archives: set[Identity] = set()
    earlier_inputs = 0
    for batch in batches:
        sources.size += sum(memoryview(batch.extents).cast("Q")[1::2])
        first = 0
        starts = memoryview(batch.extents).cast("Q")[::2]
        for number, kind in enumerate(batch.kinds):
            if kind not in _AMBIGUOUS:
                continue
            # Most inputs are host objects, and making a `Source` of each would dominate the cost.
            if kind == inputkinds.HOST and not _is_dynamic(batch.arena, starts[number]):
                continue
            source_input, source = job.inputs[earlier_inputs + number], batch[number]
            if kind not in _ARCHIVES and not is_shared(source):
                continue
            sources.add(batch.part(first, number))
            first = number + 1
            if kind in _ARCHIVES:
                for member_batch in find_members(job, source_input, source, archives, sink):
                    sources.add(member_batch, group=earlier_inputs + number + 1)
                continue
            from pylink.inputs.sharedlib import Libraries

            libraries = libraries or Libraries()
            library = libraries.add(source, source_input.library, len(sources), sink)
            if library is not None:
                sources.libraries[len(sources)] = library
                sources.add(batch.as_library(number))
        sources.add(batch.part(first, len(batch.names)))
        earlier_inputs += len(batch.names)
    return sources, libraries


def is_shared(source: Source) -> bool:
    """Return whether an input is a shared library of the host, which nvlink ignores.

    Programs count, too, since they have the same type in the ELF header, and so do texts with the
    name of a library, which host linkers read.
    """
    if source.kind == inputkinds.UNKNOWN:
        return source.name.endswith(".so")
    return (
        source.kind == inputkinds.HOST
        and _is_dynamic(source.arena, source.offset)
        and not source.name.endswith(".cubin")  # such a file must be for the device
    )


def _is_dynamic(arena: bytes, offset: int) -> bool:
    """Return whether an ELF file has the type of shared libraries."""
    return int.from_bytes(arena[offset + E_TYPE : offset + E_TYPE + 2], "little") == ET_DYN


def find_members(
    job: Job, source_input: Input, archive: Source, earlier_files: set[Identity], sink: Sink
) -> Iterator[SourceBatch]:
    """Return the members of an archive that have code, in order; none if it was an input before.

    `earlier_files` has the archives that were inputs before; this one is added.
    """
    from pylink.inputs.archive import read_members

    file = identity(source_input.name) if source_input.data is None else None
    if file in earlier_files:
        return iter(())
    if file is not None:
        earlier_files.add(file)
    options = job.options
    return read_members(
        archive,
        job.plan,
        sink,
        lazy=options.lazy_archives,
        whole_archive=source_input.whole_archive or options.whole_archive,
        overlooked=source_input.skipped is not None,
    )
