"""Thin archives: members that are files, or members of archives, beside the archive."""

from __future__ import annotations

import os
import stat

from pylink._native import inputfiles
from pylink.diagnostics.errors import reason_of
from pylink.inputs.archiveformat import ArchiveError, ArchiveMember, is_thin, read_archive
from pylink.inputs.sources import SourceBatch
from pylink.tables import extent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from pylink.diagnostics import Sink
    from pylink.inputs.sources import Source
    from pylink.options.plan import OutputPlan

# Limit of the total bytes of the files that an archive names.
MAX_SIZE = 1 << 32


def external_members(
    archive: Source, path: str, plan: OutputPlan, sink: Sink
) -> tuple[SourceBatch, list[str]]:
    """Read the members of the undamaged thin archive `archive`; return them and their files.

    `path` is the file of the archive: relative names start in its directory. Each file is read
    once, even if several members name it.
    """
    entries = list(read_archive(archive.arena, archive.offset, archive.size))
    files: dict[str, tuple[int, int]] = {}  # by path: number of the file, its size
    member_files = [member_file(entry.name, path, plan.root) for entry in entries]
    plan.members[path] = list(dict.fromkeys(member_files))
    total = 0
    for entry, file in zip(entries, member_files, strict=True):
        if file not in files:
            size = _measure_file(archive, entry, file, plan, sink)
            files[file] = len(files), size
            total += size
    if total > MAX_SIZE:
        sink.fatal("archive-limit", file=archive.name, limit=MAX_SIZE, unit="bytes")
    arena, offsets = _read_files(archive, files, sink)
    rows: list[bytes] = []
    names: list[str] = []
    members_by_header: dict[str, dict[int, ArchiveMember]] = {}
    headers = {entry.place for entry in entries}
    for entry, file in zip(entries, member_files, strict=True):
        number, size = files[file]
        offset = offsets[number]
        name = f"{archive.name}:{entry.name}"
        if entry.place >= 0:
            if file not in members_by_header:
                members_by_header[file] = _members_by_header(
                    name, arena, offset, size, headers, sink
                )
            member = members_by_header[file].get(entry.place)
            if member is None:
                reason = f"'{file}' has no member at {entry.place:#x}"
                sink.fatal("damaged-archive", file=name, reason=reason)
            offset, size, name = member.offset, member.size, f"{name}:{member.name}"
        rows.append(extent(offset, size))
        names.append(name)
    extents = b"".join(rows)
    kinds = inputfiles.classify(arena, extents) or bytes(len(rows))
    return SourceBatch(arena, names, kinds, extents), member_files


def member_file(name: str, path: str, root: str = "") -> str:
    """Return the file of a member: beside the archive or, if only there, in the working directory.

    That is nvlink's rule. `root` is prepended to absolute names.
    """
    if root and name.startswith("/"):
        return root + name
    member_path = os.path.join(os.path.dirname(path), name)
    return name if not os.path.lexists(member_path) and os.path.lexists(name) else member_path


def _measure_file(
    archive: Source, entry: ArchiveMember, file: str, plan: OutputPlan, sink: Sink
) -> int:
    """Return the size of a member's file in bytes; a fatal diagnostic if it cannot be read."""
    try:
        status = os.stat(file)
        plan.check_input(file, sink, status)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "it is not a regular file")
    except (OSError, ValueError) as error:
        _fail(archive, entry.name, file, reason_of(error), sink)
    return status.st_size


def _read_files(
    archive: Source, files: dict[str, tuple[int, int]], sink: Sink
) -> tuple[bytes, memoryview]:
    """Return an arena with the contents of the files, and the offset of each file in it.

    `files` has the number and the size of each file, by path.
    """
    paths: list[bytes | None] = [os.fsencode(file) for file in files]
    sizes = [size for _, size in files.values()]
    try:
        arena, extents, failed, error = inputfiles.read_files(paths, sizes, [None] * len(paths))
    except MemoryError:
        sink.fatal("cannot-read-file", file=archive.name, reason="there is not enough memory")
    if failed >= 0:
        file = list(files)[failed]
        reason = os.strerror(error) if error else "it became shorter while it was read"
        _fail(archive, file, file, reason, sink)
    return arena, memoryview(extents).cast("Q")[::2]


def _members_by_header(
    name: str, arena: bytes, offset: int, size: int, headers: set[int], sink: Sink
) -> dict[int, ArchiveMember]:
    """Return the members of an archive by the offset of their header, if it is in `headers`.

    `offset` and `size` are those of the archive in `arena`, `name` is for diagnostics.
    """
    try:
        if is_thin(arena, offset, size):
            raise ArchiveError("it is a thin archive, whose members are named by their files")
        return {
            entry.header: entry
            for entry in read_archive(arena, offset, size)
            if entry.header in headers
        }
    except ArchiveError as error:
        sink.fatal("damaged-archive", file=name, reason=str(error))


def _fail(archive: Source, member: str, file: str, reason: str, sink: Sink) -> NoReturn:
    """End the link, since the file of a member cannot be read."""
    name = f"{archive.name}:{member}"
    sink.fatal("cannot-read-member", file=name, path=file, reason=reason)
