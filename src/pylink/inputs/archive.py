"""Archives: turns the members that a link may need into sources (rows of `inputs/sources.py`).

nvlink links every host object of an archive, even if nothing needs it, and never another member. It
reads cubins, and overlooks members of nested archives and all from the first member on that is
neither a host object nor a cubin. pylink links cubins and overlooked members if they define a
symbol that would otherwise be undefined. So an archive that nvlink can link gives the same file.
"""

from __future__ import annotations

from pylink._native import archives
from pylink.facts import inputkinds
from pylink.facts.picknumbers import Demand
from pylink.inputs.archiveformat import ROW_SIZE, ArchiveError, is_thin, list_member_rows
from pylink.inputs.archivethin import MAX_SIZE, external_members
from pylink.inputs.sources import OVERLOOKED, WHOLE_ARCHIVE, SourceBatch
from pylink.options.plan import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylink.diagnostics import Sink
    from pylink.inputs.sources import Source
    from pylink.options.plan import Identity, OutputPlan

# Kinds of members that can hold code for the link. PTX and LTO-IR only count with --whole-archive:
# their symbols are known only after they are compiled.
_CODE = bytes([inputkinds.CUBIN, inputkinds.HOST, inputkinds.FATBIN])
_WHOLE_CODE = _CODE + bytes([inputkinds.PTX, inputkinds.LTOIR])
_ARCHIVES = {inputkinds.ARCHIVE, inputkinds.THIN_ARCHIVE}

# By kind of member: whether nvlink stops reading the archive there, and the Demand (the condition
# under which it is linked) of a member that nvlink reads.
_STOPS = bytes(kind not in (inputkinds.HOST, inputkinds.CUBIN) for kind in range(256))
_DEMANDS = bytes(
    Demand.ALWAYS if kind == inputkinds.HOST else Demand.TOGETHER for kind in range(256)
)

# Limits for one archive: a small file can refer to a large one, or to itself, very often.
MAX_DEPTH = 16
MAX_ARCHIVES = 1 << 12
MAX_MEMBERS = 1 << 18


class _ArchiveTotals:
    """Counts the nested archives, members and bytes of one archive against the limits."""

    __slots__ = ("_archives", "_file", "_members", "_sink", "_size")

    def __init__(self, file: str, sink: Sink) -> None:
        self._file = file
        self._sink = sink
        self._archives = self._members = self._size = 0

    def add(self, *, archives: int = 0, members: int = 0, size: int = 0) -> None:
        """Count archives, members and bytes (`size`) before they are read.

        If a limit is exceeded, the link ends with a diagnostic.
        """
        self._archives += archives
        self._members += members
        self._size += size
        for count, limit, unit in (
            (self._archives, MAX_ARCHIVES, "archives"),
            (self._members, MAX_MEMBERS, "members"),
            (self._size, MAX_SIZE, "bytes"),
        ):
            if count > limit:
                self._sink.fatal("archive-limit", file=self._file, limit=limit, unit=unit)


def read_members(
    archive: Source,
    plan: OutputPlan,
    sink: Sink,
    *,
    lazy: bool,
    whole_archive: bool,
    overlooked: bool,
) -> Iterator[SourceBatch]:
    """Yield the members of `archive` with code, in its order; damage ends the link.

    With `whole_archive` all of them are linked. Otherwise `lazy` links only members that define a
    symbol which another file needs. Without both, host objects that nvlink reads are linked, and
    all other members if one of them is needed. `overlooked` says that nvlink would not
    read the archive.
    """
    code = _WHOLE_CODE if whole_archive else _CODE
    totals = _ArchiveTotals(archive.name, sink)
    for batch, depth in _walk(archive, archive.name, (), totals, plan, sink):
        count = len(batch.names)
        seen_count = 0 if overlooked or depth > 1 else _count_seen(batch)
        overlooked = overlooked or seen_count < count
        if whole_archive:
            batch.demands = bytes([Demand.ALWAYS]) * count
        elif lazy:
            batch.demands = bytes([Demand.NEEDED]) * count
        else:
            seen_demands = batch.kinds[:seen_count].translate(_DEMANDS)
            batch.demands = seen_demands + bytes([Demand.TOGETHER]) * (count - seen_count)
        mark = WHOLE_ARCHIVE if whole_archive else 0
        batch.marks = bytes([mark]) * seen_count + bytes([mark | OVERLOOKED]) * (count - seen_count)
        yield batch.of_kinds(code)


def _count_seen(batch: SourceBatch) -> int:
    """Return how many members at the start of a batch nvlink reads; it overlooks the others."""
    stops = (batch.kinds.translate(_STOPS).find(1), batch.marks.find(OVERLOOKED))
    return min((end for end in stops if end >= 0), default=len(batch.names))


def _walk(
    archive: Source,
    path: str,
    outer_files: tuple[Identity | None, ...],
    totals: _ArchiveTotals,
    plan: OutputPlan,
    sink: Sink,
) -> Iterator[tuple[SourceBatch, int]]:
    """Yield the members that are not archives, in batches, each with its nesting depth from 1 on.

    Members of nested archives are among them. `path` is the file that holds `archive`.
    `outer_files` has, for each archive around this one, its file's identity if it is thin, else
    None.
    """
    if len(outer_files) == MAX_DEPTH:
        sink.fatal(
            "archive-limit", file=archive.name, limit=MAX_DEPTH, unit="archives in each other"
        )
    try:
        rows = list_member_rows(archive.arena, archive.offset, archive.size, MAX_MEMBERS + 1)
    except ArchiveError as error:
        name = f"{archive.name}:{error.member}" if error.member else archive.name
        sink.fatal("damaged-archive", file=name, reason=str(error))
    totals.add(archives=1, members=len(rows) // ROW_SIZE)
    files: list[str] = []
    if is_thin(archive.arena, archive.offset, archive.size):
        file = identity(path)
        if file is not None and file in outer_files:
            sink.fatal("archive-cycle", file=archive.name)
        outer_files = (*outer_files, file)
        batch, files = external_members(archive, path, plan, sink)
        totals.add(size=len(batch.arena))
    else:
        outer_files = (*outer_files, None)
        batch = _internal_members(archive, rows)
    first = 0
    for number, kind in enumerate(batch.kinds) if _ARCHIVES.intersection(batch.kinds) else ():
        if kind in _ARCHIVES:
            yield batch.part(first, number), len(outer_files)
            inner = files[number] if files else path
            yield from _walk(batch[number], inner, outer_files, totals, plan, sink)
            first = number + 1
    yield batch.part(first, len(batch.names)), len(outer_files)


def _internal_members(archive: Source, rows: bytes) -> SourceBatch:
    """Return the members of an archive that is not thin, from its MemberRows."""
    names, member_kinds, extents, inline = archives.split_rows(
        archive.arena, rows, f"{archive.name}:"
    )
    batch = SourceBatch(archive.arena, names, member_kinds, extents)
    # nvlink takes a name in front of the contents (`inline`) for a part of them, and so does not
    # recognize the member.
    batch.marks = inline.replace(b"\1", bytes([OVERLOOKED]))
    return batch
