"""Archives: the members that a link takes from them, as sources of their own.

nvlink links every host object of an archive, whether something needs it or not, and overlooks the
rest: cubins and fat binaries, members of nested archives, and everything after the first member
that is not an ELF file. Here these are at hand for what would otherwise be undefined, so that an
archive which nvlink can link gives the same file.
"""

from __future__ import annotations

from pylink._native import archives
from pylink.inputs import kinds
from pylink.inputs.archiveformat import ROW_SIZE, ArchiveError, is_thin, list_all
from pylink.inputs.archivethin import MAX_SIZE, external_members
from pylink.inputs.sources import ALWAYS, NEEDED, OVERLOOKED, TOGETHER, WHOLE, Run
from pylink.options.plan import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylink.diagnostics import Sink
    from pylink.inputs.sources import Source
    from pylink.options.plan import Identity, Plan

# Members that can hold code for the link. PTX and LTO-IR must be asked for: what they define
# shows only after they are compiled.
_CODE = bytes([kinds.CUBIN, kinds.HOST, kinds.FATBIN])
_WHOLE = _CODE + bytes([kinds.PTX, kinds.LTOIR])
_ARCHIVES = {kinds.ARCHIVE, kinds.THIN_ARCHIVE}

# From kinds to whether nvlink ends there, and to when a member is linked that it looks at.
_ENDS = bytes(kind not in (kinds.HOST, kinds.CUBIN) for kind in range(256))
_DEMANDS = bytes(ALWAYS if kind == kinds.HOST else TOGETHER for kind in range(256))

# What one archive may lead to, as a small file can name a large one, or itself, very often.
MAX_DEPTH = 16
MAX_ARCHIVES = 1 << 12
MAX_MEMBERS = 1 << 18


class _Reached:
    """What an archive led to so far."""

    __slots__ = ("_archives", "_file", "_members", "_sink", "_size")

    def __init__(self, file: str, sink: Sink) -> None:
        self._file = file
        self._sink = sink
        self._archives = self._members = self._size = 0

    def add(self, *, archives: int = 0, members: int = 0, size: int = 0) -> None:
        """Count what comes next; the link ends where that is too much. `size` is in bytes."""
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


def members(
    archive: Source, plan: Plan, sink: Sink, *, lazy: bool, whole: bool, overlooked: bool
) -> Iterator[Run]:
    """The members of `archive` with code, in its order; damage ends the link.

    `whole` says that all of it is asked for, `lazy` leaves every member for what needs it unless
    that is so, and `overlooked` says that nvlink would not look at the archive.
    """
    code = _WHOLE if whole else _CODE
    reached = _Reached(archive.name, sink)
    for run, depth in _walk(archive, archive.name, (), reached, plan, sink):
        count = len(run.names)
        seen = 0 if overlooked or depth > 1 else _seen(run)
        overlooked = overlooked or seen < count
        if whole:
            run.demands = bytes([ALWAYS]) * count
        elif lazy:
            run.demands = bytes([NEEDED]) * count
        else:
            run.demands = run.kinds[:seen].translate(_DEMANDS) + bytes([TOGETHER]) * (count - seen)
        mark = WHOLE if whole else 0
        run.marks = bytes([mark]) * seen + bytes([mark | OVERLOOKED]) * (count - seen)
        yield run.only(code)


def _seen(run: Run) -> int:
    """How many of the members nvlink looks at."""
    ends = (run.kinds.translate(_ENDS).find(1), run.marks.find(OVERLOOKED))
    return min((end for end in ends if end >= 0), default=len(run.names))


def _walk(
    archive: Source,
    path: str,
    around: tuple[Identity | None, ...],
    reached: _Reached,
    plan: Plan,
    sink: Sink,
) -> Iterator[tuple[Run, int]]:
    """The members that are not archives, in runs, and how many archives each is in.

    `path` is the file that holds `archive`, and `around` tells the files of the archives around it.
    """
    if len(around) == MAX_DEPTH:
        sink.fatal(
            "archive-limit", file=archive.name, limit=MAX_DEPTH, unit="archives in each other"
        )
    try:
        rows = list_all(archive.arena, archive.offset, archive.size, MAX_MEMBERS + 1)
    except ArchiveError as error:
        name = f"{archive.name}:{error.member}" if error.member else archive.name
        sink.fatal("damaged-archive", file=name, reason=str(error))
    reached.add(archives=1, members=len(rows) // ROW_SIZE)
    files: list[str] = []
    if is_thin(archive.arena, archive.offset, archive.size):
        here = identity(path)
        if here is not None and here in around:
            sink.fatal("archive-cycle", file=archive.name)
        around = (*around, here)
        run, files = external_members(archive, path, plan, sink)
        reached.add(size=len(run.arena))
    else:
        around = (*around, None)
        run = _internal(archive, rows)
    first = 0
    for number, kind in enumerate(run.kinds) if _ARCHIVES.intersection(run.kinds) else ():
        if kind in _ARCHIVES:
            yield run.part(first, number), len(around)
            inner = files[number] if files else path
            yield from _walk(run[number], inner, around, reached, plan, sink)
            first = number + 1
    yield run.part(first, len(run.names)), len(around)


def _internal(archive: Source, rows: bytes) -> Run:
    """The members in the archive itself."""
    names, members_here, extents, inline = archives.split_rows(
        archive.arena, rows, f"{archive.name}:"
    )
    run = Run(archive.arena, names, members_here, extents)
    run.marks = inline.replace(b"\1", bytes([OVERLOOKED]))  # nvlink takes the name for contents
    return run
