"""Archives: the members that a link takes from them, as sources of their own.

nvlink links every host object of an archive, whether something needs it or not, and overlooks the
rest: cubins and fat binaries, members of nested archives, and everything behind the first member
that is no ELF file. Here these are at hand for what would otherwise be undefined, so that an
archive which nvlink can link gives the same file.
"""

from __future__ import annotations

from pylink.inputs import kinds
from pylink.inputs.archiveformat import ArchiveError, is_thin, read_archive
from pylink.inputs.archivethin import classify, external_members
from pylink.inputs.pieces import ALWAYS, NEEDED, TOGETHER, Source
from pylink.outputs.plan import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylink.diagnostics import Sink
    from pylink.inputs.archiveformat import Entry
    from pylink.outputs.plan import Identity, Plan

# Members that can hold code for the link. PTX and LTO-IR have to be asked for: what they define
# shows only after they are compiled.
_CODE = (kinds.HOST, kinds.CUBIN, kinds.FATBIN)
_WHOLE = (*_CODE, kinds.PTX, kinds.LTOIR)
_ARCHIVES = (kinds.ARCHIVE, kinds.THIN_ARCHIVE)
_ELF = (kinds.HOST, kinds.CUBIN)

# What one archive may lead to, as a small file can name a large one, or itself, very often.
MAX_DEPTH = 16
MAX_MEMBERS = 1 << 18


def members(archive: Source, plan: Plan, sink: Sink, *, lazy: bool = False) -> list[Source]:
    """The members of `archive` with code, in its order; damage ends the link.

    `lazy` leaves every member for what needs it, unless the whole archive is asked for.
    """
    overlooked = archive.overlooked
    chosen: list[Source] = []
    count = 0
    for source, depth in _walk(archive, archive.name, (), plan, sink):
        count += 1
        if count > MAX_MEMBERS:
            sink.fatal("archive-limit", file=archive.name, what=f"{MAX_MEMBERS} members")
        overlooked |= depth > 1 or source.kind not in _ELF or source.overlooked
        if source.kind not in (_WHOLE if archive.whole else _CODE):
            continue
        if archive.whole:
            source.demand = ALWAYS
        elif lazy:
            source.demand = NEEDED
        elif overlooked or source.kind != kinds.HOST:
            source.demand = TOGETHER
        source.overlooked = overlooked
        source.whole = archive.whole
        source.group = archive.group
        chosen.append(source)
    return chosen


def _walk(
    archive: Source, path: str, around: tuple[Identity | None, ...], plan: Plan, sink: Sink
) -> Iterator[tuple[Source, int]]:
    """Each member that is no archive, and how many archives it is in.

    `path` is the file that holds `archive`, and `around` tells the files of the archives around it.
    """
    if len(around) == MAX_DEPTH:
        sink.fatal("archive-limit", file=archive.name, what=f"{MAX_DEPTH} archives in each other")
    try:
        entries = list(read_archive(archive.arena, archive.offset, archive.size))
    except ArchiveError as error:
        name = f"{archive.name}:{error.member}" if error.member else archive.name
        sink.fatal("damaged-archive", file=name, reason=str(error))
    if is_thin(archive.arena, archive.offset, archive.size):
        here = identity(path)
        if here is not None and here in around:
            sink.fatal("archive-cycle", file=archive.name)
        around = (*around, here)
        found = external_members(archive, entries, path, plan, sink)
    else:
        around = (*around, None)
        found = _internal(archive, entries, path)
    for source, file in found:
        if source.kind in _ARCHIVES:
            yield from _walk(source, file, around, plan, sink)
        else:
            yield source, len(around)


def _internal(archive: Source, entries: list[Entry], path: str) -> list[tuple[Source, str]]:
    """The members in the archive itself, each with the file that holds it."""
    arena = archive.arena
    found = classify(arena, [(entry.offset, entry.size) for entry in entries])
    sources = []
    for entry, kind in zip(entries, found, strict=True):
        source = Source(f"{archive.name}:{entry.name}", kind, arena, entry.offset, entry.size)
        source.overlooked = entry.inline  # nvlink takes the name for the contents
        sources.append((source, path))
    return sources
