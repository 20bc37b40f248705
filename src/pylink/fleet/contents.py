"""Reads the device code of files that native code cannot index (see `fragment`), in batches.

Files are read as a link reads them. For large files the head is read first, since a build tree has
many files that are not inputs. A file that changes while it is read is read again by the next run.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from pylink._native import inputfiles
from pylink.diagnostics.errors import reason_of
from pylink.diagnostics.stream import printable
from pylink.facts import inputkinds
from pylink.facts.elf import EM_CUDA, ET_DYN, ET_EXEC, PT_INTERP
from pylink.facts.headers import FileHeader
from pylink.facts.records import EHDR
from pylink.files.reading import read_incoming
from pylink.fleet.columns import CUBIN, OTHER
from pylink.fleet.parts import LARGE_FILE
from pylink.inputs import kinds
from pylink.inspect.containers import Allowance, Part, UnreadableFile, is_known, parts
from pylink.tables import extent, extent_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pylink.fleet.walk import Files, Stamp, TreeFile

# Bytes of an arena, the buffer into which small files are read together. With this size it is
# still in the processor's cache when its sections are hashed.
ARENA_SIZE = 16 << 20
KIND_NAMES = {
    inputkinds.CUBIN: CUBIN,
    inputkinds.HOST: "host object",
    inputkinds.FATBIN: "fat binary",
    inputkinds.ARCHIVE: "archive",
    inputkinds.THIN_ARCHIVE: "thin archive",
}
SHARED, EXECUTABLE = "shared library", "executable"
UNREADABLE = "unreadable"
# Bytes at the start of a file, which have the ELF and program headers of any usual file.
HEAD_SIZE = 1 << 12
# Wheels and other zip files, which are not inputs of links.
ZIP, ZIP_MAGIC = "zip file", b"PK\x03\x04"


class FileResult:
    """The result of reading one file: its kind, an error if any (`note`), and its stamp."""

    __slots__ = ("kind", "note", "stamp")

    def __init__(self, kind: str, note: str | None, stamp: Stamp) -> None:
        self.kind, self.note, self.stamp = kind, note, stamp


@dataclass(frozen=True, slots=True)
class CodeSource:
    """The origin of device code: row of the file, archive member, number `entry` in the file.

    `kind` is "cubin", "PTX" or "LTO-IR". `size` are its unpacked bytes, `packed` its bytes in the
    file. `arch` is the SM number in the entry of a fat binary, 0 for a cubin outside of these.
    """

    file: int
    member: str
    entry: int
    kind: str
    size: int
    packed: int
    arch: int = 0


class Batch:
    """Device code of some files: cubins, and in `others` PTX and LTO-IR.

    `arena` has the cubins' bytes, and `extents` the offset in it and the size of each, in order.
    """

    __slots__ = ("arena", "cubins", "extents", "others")

    def __init__(
        self, arena: bytes = b"", extents: bytes = b"", cubins: Iterable[CodeSource] = ()
    ) -> None:
        self.arena, self.extents = arena, extents
        self.cubins = [*cubins]
        self.others: list[CodeSource] = []


def read_contents(
    rows: Sequence[int], files: Files, results: dict[int, FileResult]
) -> Iterator[Batch]:
    """Yield the device code of the files in `rows`; add each one's result, by row, to `results`."""
    sizes = files.sizes
    start = 0
    while start < len(rows):
        end, size = start, 0
        while end < len(rows) and (end == start or size + sizes[rows[end]] <= ARENA_SIZE):
            size += sizes[rows[end]]
            end += 1
        part_rows = rows[start:end]
        yield from _read_some(part_rows, [files.file(row) for row in part_rows], results)
        start = end


def _read_some(
    rows: Sequence[int], files: Sequence[TreeFile], results: dict[int, FileResult]
) -> Iterator[Batch]:
    """Yield the device code of `files`; `rows` are their numbers.

    They are read into one arena, or one by one if a file is large, unreadable or has changed.
    """
    arena, extents = _read_arena(files)
    if arena is None:
        for row, file in zip(rows, files, strict=True):
            yield from _read_alone(file, row, results)
        return
    kind_codes = inputfiles.classify(arena, extents) or bytes(len(files))
    batch, places = Batch(arena), []
    containers: list[tuple[int, bytes]] = []
    for number, (row, file, kind) in enumerate(zip(rows, files, kind_codes, strict=True)):
        offset, size = extent_at(extents, number)
        head = arena[offset : offset + min(size, HEAD_SIZE)]
        result = FileResult(_kind_name(kind, head), None, file.stamp)
        results[row] = result
        if kind == inputkinds.CUBIN and _is_cubin(arena[offset : offset + 20]):
            batch.cubins.append(CodeSource(row, "", 0, "cubin", size, size))
            places.append(extent(offset, size))
        elif kind in KIND_NAMES and kind != inputkinds.CUBIN:
            containers.append((number, arena[offset : offset + size]))
        elif arena[offset : offset + 4] == ZIP_MAGIC:
            result.kind = ZIP
            containers.append((number, arena[offset : offset + size]))
        else:
            result.kind = OTHER
    batch.extents = b"".join(places)
    yield batch
    for number, data in containers:
        yield from _unpack(files[number], rows[number], data, results[rows[number]])


def _kind_name(kind: int, head: bytes) -> str:
    """Return the name of a file's `kind`; `head` tells host libraries and programs from objects."""
    if kind != inputkinds.HOST or len(head) < EHDR.size:
        return KIND_NAMES.get(kind, OTHER)
    header = FileHeader._make(EHDR.unpack_from(head))
    if header.type == ET_EXEC:
        return EXECUTABLE
    if header.type != ET_DYN:
        return KIND_NAMES[kind]
    end = min(header.phoff + header.phentsize * header.phnum, len(head) - 3)
    starts = range(header.phoff, end, max(header.phentsize, 1))
    loaded = any(int.from_bytes(head[start : start + 4], "little") == PT_INTERP for start in starts)
    return EXECUTABLE if loaded else SHARED


def _read_arena(files: Sequence[TreeFile]) -> tuple[bytes | None, bytes]:
    """Return an arena with the contents of all files, and their offsets and sizes in it.

    The arena is None if a file is large, cannot be read, or has changed.
    """
    if any(file.stamp.size > LARGE_FILE for file in files):
        return None, b""
    paths = [file.full_path for file in files]
    sizes = [file.stamp.size for file in files]
    no_data: list[bytes | None] = [None] * len(files)
    arena, extents, failed, _ = inputfiles.read_files([*paths], sizes, no_data)
    if failed >= 0 or not all(file.stamp.fits(file.full_path) for file in files):
        return None, b""
    return arena, extents


def _read_alone(file: TreeFile, row: int, results: dict[int, FileResult]) -> Iterator[Batch]:
    """Yield the device code of one file, which may be large or have changed since its listing."""
    name = os.fsdecode(file.full_path)
    result = FileResult(OTHER, None, file.stamp)
    results[row] = result
    try:
        data = read_incoming(name, pipes=False, is_wanted=_is_wanted)
    except OSError as error:
        result.kind, result.note = UNREADABLE, reason_of(error)
        result.stamp = file.stamp.without_times()
        return
    if not file.stamp.fits(file.full_path):
        result.stamp = file.stamp.without_times()
    if not _is_wanted(data):
        return
    if data.startswith(ZIP_MAGIC):
        result.kind = ZIP
        yield from _unpack(file, row, data, result)
        return
    arena, extents, _, _ = inputfiles.read_files([None], [len(data)], [data])
    kind_codes = inputfiles.classify(arena, extents) or bytes(1)
    result.kind = _kind_name(kind_codes[0], data[:HEAD_SIZE])
    if kind_codes[0] == inputkinds.CUBIN and _is_cubin(data[:20]):
        yield Batch(arena, extents, [CodeSource(row, "", 0, "cubin", len(data), len(data))])
    elif result.kind != OTHER and kind_codes[0] != inputkinds.CUBIN:
        yield from _unpack(file, row, data, result)
    else:
        result.kind = OTHER


def _unpack(file: TreeFile, row: int, data: bytes, result: FileResult) -> Iterator[Batch]:
    """Yield the device code inside a container file, up to damage, which `result.note` describes.

    A file without damage and without code becomes of the kind OTHER.
    """
    name = os.fsdecode(file.full_path)
    if result.kind == KIND_NAMES[inputkinds.THIN_ARCHIVE]:
        result.stamp = file.stamp.without_times()  # members may change while its own stamp stays
    cubins: list[bytes] = []
    batch = Batch()
    has_any = False
    size = 0
    try:
        list_code = _list_zip_parts if result.kind == ZIP else parts
        for entry, part in enumerate(list_code(name, data, 0, Allowance())):
            member = printable(part.name[len(name) + 1 :])
            source = CodeSource(row, member, entry, part.kind, part.size, part.packed, part.arch)
            if part.kind != "cubin":
                batch.others.append(source)
            elif _is_cubin(part.data[:20]):
                batch.cubins.append(source)
                cubins.append(part.data)
                size += len(part.data)
            else:
                continue
            has_any = True
            if size > ARENA_SIZE:
                yield _fill_arena(batch, cubins)
                batch, cubins, size = Batch(), [], 0
    except UnreadableFile as error:
        result.note = printable(str(error)).removeprefix(f"{printable(name)}: ")
    if batch.cubins or batch.others:
        yield _fill_arena(batch, cubins)
    if not has_any and result.note is None:
        result.kind = OTHER


def _is_wanted(head: bytes) -> bool:
    """Return whether a file with this head may contain device code."""
    return is_known(head) or head.startswith(ZIP_MAGIC)


def _list_zip_parts(name: str, data: bytes, depth: int, allowance: Allowance) -> Iterator[Part]:
    """Yield the device code in a zip file's members; UnreadableFile at the first damaged one."""
    # Few trees have zip files, and their reader is slow to import.
    from pylink.size import zips
    from pylink.size.sources import MemorySource

    source = MemorySource(data)
    member = name
    try:
        for entry in zips.list_members(source):
            member = f"{name}:{entry.name}"
            allowance.count_member(member, entry.size)
            inner = None if zips.is_link(entry) else zips.open_member(source, entry, is_known)
            if inner is not None:
                contents = inner.read(0, inner.size)
                yield from parts(member, contents, depth + 1, allowance)
    except zips.DamagedZip as error:
        raise UnreadableFile(f"{member}: {error}") from None


def _fill_arena(batch: Batch, pieces: list[bytes]) -> Batch:
    """Copy `pieces`, the contents of the batch's cubins, to its arena."""
    no_data: list[bytes | None] = [None] * len(pieces)
    batch.arena, batch.extents, _, _ = inputfiles.read_files(
        no_data, [len(piece) for piece in pieces], [*pieces]
    )
    return batch


def _is_cubin(head: bytes) -> bool:
    """Return whether a file with this head, at least 20 bytes, is a cubin."""
    return head[:4] == kinds.ELF_MAGIC and int.from_bytes(head[18:20], "little") == EM_CUDA
