"""What files hold that are looked at closely (see `fragment`), some megabytes at a time.

Files are read whole and at once, as a link reads them. The beginning of large files is read first:
a build tree has more than inputs. What changes while it is read is taken as it is then, and read
again by the next run.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, NamedTuple

from pylink._native import inputfiles
from pylink.diagnostics.errors import reason_of
from pylink.diagnostics.stream import printable
from pylink.facts.elf import EM_CUDA, ET_EXEC
from pylink.files.reading import read_incoming
from pylink.fleet.columns import CUBIN, OTHER
from pylink.fleet.parts import SNIFFED
from pylink.inputs import kinds
from pylink.inspect.containers import Allowance, Part, UnreadableFile, is_known, parts
from pylink.tables import extent, extent_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pylink.fleet.walk import Files, Stamp, TreeFile

# An arena of this size is still in the processor's cache when its sections are hashed.
ARENA_SIZE = 16 << 20
KIND_NAMES = {
    kinds.CUBIN: CUBIN,
    kinds.HOST: "host object",
    kinds.FATBIN: "fat binary",
    kinds.ARCHIVE: "archive",
    kinds.THIN_ARCHIVE: "thin archive",
}
SHARED, EXECUTABLE = "shared library", "executable"
UNREADABLE = "unreadable"
# The file's first bytes, with the header and all segments of any usual file.
HEAD = 1 << 12
_HEADER = struct.Struct("<16xH14xQ14xHH6x")  # type, segments: where, bytes of each, how many
ET_DYN, PT_INTERP = 3, b"\3\0\0\0"
# Wheels and other zip files; links take none.
ZIP, ZIP_MAGIC = "zip file", b"PK\x03\x04"


class FileResult:
    """What became of one file: its kind, what went wrong, and as what it was read."""

    __slots__ = ("kind", "note", "stamp")

    def __init__(self, kind: str, note: str | None, stamp: Stamp) -> None:
        self.kind, self.note, self.stamp = kind, note, stamp


class Source(NamedTuple):
    """Where a piece of device code was found: row of the file, member, number in the file.

    `size` are its bytes when it is unpacked, `packed` those in the file. `arch` is what the entry
    of a fat binary says, 0 for a file.
    """

    file: int
    member: str
    entry: int
    kind: str
    size: int
    packed: int
    arch: int = 0


class Batch:
    """Pieces of device code; the cubins among them lie in the arena, in order."""

    __slots__ = ("arena", "cubins", "extents", "others")

    def __init__(
        self, arena: bytes = b"", extents: bytes = b"", cubins: Iterable[Source] = ()
    ) -> None:
        self.arena, self.extents = arena, extents
        self.cubins = [*cubins]
        self.others: list[Source] = []


def read_contents(
    rows: Sequence[int], files: Files, results: dict[int, FileResult]
) -> Iterator[Batch]:
    """The device code of the files of these rows; `results` gets what became of each."""
    sizes = files.sizes
    start = 0
    while start < len(rows):
        end, size = start, 0
        while end < len(rows) and (end == start or size + sizes[rows[end]] <= ARENA_SIZE):
            size += sizes[rows[end]]
            end += 1
        some = rows[start:end]
        yield from _read_some(some, [files.file(row) for row in some], results)
        start = end


def _read_some(
    rows: Sequence[int], files: Sequence[TreeFile], results: dict[int, FileResult]
) -> Iterator[Batch]:
    """The same of some that fit into one arena."""
    arena, extents = _arena(files)
    if arena is None:
        for row, file in zip(rows, files, strict=True):
            yield from _read_alone(file, row, results)
        return
    kind_codes = inputfiles.classify(arena, extents) or bytes(len(files))
    batch, places = Batch(arena), []
    containers: list[tuple[int, bytes]] = []
    for number, (row, file, kind) in enumerate(zip(rows, files, kind_codes, strict=True)):
        offset, size = extent_at(extents, number)
        head = arena[offset : offset + min(size, HEAD)]
        result = FileResult(_kind_name(kind, head), None, file.stamp)
        results[row] = result
        if kind == kinds.CUBIN and _is_cubin(arena[offset : offset + 20]):
            batch.cubins.append(Source(row, "", 0, "cubin", size, size))
            places.append(extent(offset, size))
        elif kind in KIND_NAMES and kind != kinds.CUBIN:
            containers.append((number, arena[offset : offset + size]))
        elif arena[offset : offset + 4] == ZIP_MAGIC:
            result.kind = ZIP
            containers.append((number, arena[offset : offset + size]))
        else:
            result.kind = OTHER
    batch.extents = b"".join(places)
    yield batch
    for number, data in containers:
        yield from _take_apart(files[number], rows[number], data, results[rows[number]])


def _kind_name(kind: int, head: bytes) -> str:
    """What a file is called, also by the type of its ELF header and whether it has a loader."""
    if kind != kinds.HOST or len(head) < _HEADER.size:
        return KIND_NAMES.get(kind, OTHER)
    elf_type, segments, width, count = _HEADER.unpack_from(head)
    if elf_type == ET_EXEC:
        return EXECUTABLE
    if elf_type != ET_DYN:
        return KIND_NAMES[kind]
    starts = range(segments, min(segments + width * count, len(head) - 3), max(width, 1))
    loaded = any(head[at : at + 4] == PT_INTERP for at in starts)
    return EXECUTABLE if loaded else SHARED


def _arena(files: Sequence[TreeFile]) -> tuple[bytes | None, bytes]:
    """All files, one after the other; None where one needs a closer look."""
    if any(file.stamp.size > SNIFFED for file in files):
        return None, b""
    paths = [file.full for file in files]
    sizes = [file.stamp.size for file in files]
    nothing: list[bytes | None] = [None] * len(files)
    arena, extents, failed, _ = inputfiles.read_files([*paths], sizes, nothing)
    if failed >= 0 or not all(file.stamp.fits(file.full) for file in files):
        return None, b""
    return arena, extents


def _read_alone(file: TreeFile, row: int, results: dict[int, FileResult]) -> Iterator[Batch]:
    """One file, whatever it has become."""
    name = os.fsdecode(file.full)
    result = FileResult(OTHER, None, file.stamp)
    results[row] = result
    try:
        data = read_incoming(name, pipes=False, wanted=_is_wanted)
    except OSError as error:
        result.kind, result.note = UNREADABLE, reason_of(error)
        result.stamp = file.stamp.forgotten()
        return
    if not file.stamp.fits(file.full):
        result.stamp = file.stamp.forgotten()
    if not _is_wanted(data):
        return
    if data.startswith(ZIP_MAGIC):
        result.kind = ZIP
        yield from _take_apart(file, row, data, result)
        return
    arena, extents, _, _ = inputfiles.read_files([None], [len(data)], [data])
    kind_codes = inputfiles.classify(arena, extents) or bytes(1)
    result.kind = _kind_name(kind_codes[0], data[:HEAD])
    if kind_codes[0] == kinds.CUBIN and _is_cubin(data[:20]):
        yield Batch(arena, extents, [Source(row, "", 0, "cubin", len(data), len(data))])
    elif result.kind != OTHER and kind_codes[0] != kinds.CUBIN:
        yield from _take_apart(file, row, data, result)
    else:
        result.kind = OTHER


def _take_apart(file: TreeFile, row: int, data: bytes, result: FileResult) -> Iterator[Batch]:
    """What a file holds that has device code inside; less where it is damaged."""
    name = os.fsdecode(file.full)
    if result.kind == KIND_NAMES[kinds.THIN_ARCHIVE]:
        result.stamp = file.stamp.forgotten()  # its members change without it
    pieces: list[bytes] = []
    batch = Batch()
    has_any = False
    size = 0
    try:
        inside = _of_zip if result.kind == ZIP else parts
        for entry, part in enumerate(inside(name, data, 0, Allowance())):
            member = printable(part.name[len(name) + 1 :])
            source = Source(row, member, entry, part.kind, part.size, part.packed, part.arch)
            if part.kind != "cubin":
                batch.others.append(source)
            elif _is_cubin(part.data[:20]):
                batch.cubins.append(source)
                pieces.append(part.data)
                size += len(part.data)
            else:
                continue
            has_any = True
            if size > ARENA_SIZE:
                yield _gathered(batch, pieces)
                batch, pieces, size = Batch(), [], 0
    except UnreadableFile as error:
        result.note = printable(str(error)).removeprefix(f"{printable(name)}: ")
    if batch.cubins or batch.others:
        yield _gathered(batch, pieces)
    if not has_any and result.note is None:
        result.kind = OTHER


def _is_wanted(head: bytes) -> bool:
    return is_known(head) or head.startswith(ZIP_MAGIC)


def _of_zip(name: str, data: bytes, depth: int, allowance: Allowance) -> Iterator[Part]:
    """What the members of a zip file hold; UnreadableFile at the first that is damaged."""
    # Few trees have zip files, and what reads them takes longer to import than all else here.
    from pylink.size import zips
    from pylink.size.sources import MemorySource

    source = MemorySource(data)
    member = name
    try:
        for entry in zips.list_members(source):
            member = f"{name}:{entry.name}"
            allowance.take(member, entry.size)
            inner = None if zips.is_link(entry) else zips.open_member(source, entry, is_known)
            if inner is not None:
                contents = inner.read(0, inner.size)
                yield from parts(member, contents, depth + 1, allowance)
    except zips.DamagedZip as error:
        raise UnreadableFile(f"{member}: {error}") from None


def _gathered(batch: Batch, pieces: list[bytes]) -> Batch:
    nothing: list[bytes | None] = [None] * len(pieces)
    batch.arena, batch.extents, _, _ = inputfiles.read_files(
        nothing, [len(piece) for piece in pieces], [*pieces]
    )
    return batch


def _is_cubin(head: bytes) -> bool:
    return head[:4] == kinds.ELF_MAGIC and int.from_bytes(head[18:20], "little") == EM_CUDA
