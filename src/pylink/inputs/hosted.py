"""Host objects and fat binaries: the entries that are linked for the target."""

from __future__ import annotations

from struct import Struct

from pylink._native import fatbin
from pylink.inputs.choice import CHIP, ENTRY_ELF, ENTRY_LTOIR, ENTRY_PTX, FAMILY, Chooser
from pylink.inputs.damage import FAULT, report_damage, report_entry
from pylink.inputs.entries import entry_text, pack_entry
from pylink.inputs.kinds import CUBIN, ELF_MAGIC, FATBIN, HOST, LTOIR, OF_HOST, PTX, SHARED
from pylink.inputs.loaded import SYSTEM_LIBRARY
from pylink.inputs.payload import DamagedPayload, Unpacker, codec_of, is_compressed
from pylink.inputs.pieces import Hosted, Piece
from pylink.tables import extent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylink.diagnostics import Diagnostic, Sink
    from pylink.inputs.pieces import Source
    from pylink.inputs.sharedlib import Libraries
    from pylink.phases.init import Job

# EntryRow and SourceRow of fatbin.pyx.
ENTRY = Struct("<6I5Q")
SOURCE = Struct("<2I14Q")

Entry = tuple[int, int, int, int, int, int, int, int, int, int, int]

# What `code=` of nvcc calls each kind of entry.
CODE_WORDS = {ENTRY_ELF: "sm_", ENTRY_PTX: "compute_", ENTRY_LTOIR: "lto_"}

PIECE_OF = {ENTRY_ELF: CUBIN, ENTRY_PTX: PTX, ENTRY_LTOIR: LTOIR}


def unpack_hosted(
    job: Job, sources: list[Source], libraries: Libraries | None, sink: Sink
) -> dict[Source, Hosted]:
    """What each host object and fat binary among the sources holds.

    A container without code for the target is warned of, a damaged one reported. Like nvlink, the
    warning passes over members of archives, unless all of them are asked for, and over the device
    runtime library: most links need little of them.
    """
    found: dict[Source, Hosted] = {}
    arenas: dict[int, list[Source]] = {}
    for source in sources:
        if source.kind in (HOST, FATBIN, SHARED):
            arenas.setdefault(id(source.arena), []).append(source)
    scans = [scan(group, found, sink) for group in arenas.values()]
    linked = libraries.choose(sources, found, sink) if libraries else {}
    chooser = Chooser(job.target, optimizes=job.optimizes)
    unpacker = Unpacker(job.options.max_uncompressed_size, sink)
    for group, (entries, damaged) in zip(arenas.values(), scans, strict=True):
        # Containers of each source without code for the target.
        missing = [found[source].containers for source in group]
        for entry, fits in choose(entries, chooser):
            number = entry[0]
            source = group[number]
            if source.library is not None and entry[1] not in linked[source]:
                continue
            if fits and number not in damaged:
                missing[number] -= 1
                add_piece(found[source], source, entry, unpacker, sink)
        if not job.options.suppress_arch_warning:
            for number, source in enumerate(group):
                asked_for = source.whole or not (source.group or SYSTEM_LIBRARY in source.name)
                if missing[number] and asked_for and number not in damaged:
                    sink.report(
                        "arch-not-found",
                        arch=job.options.arch,
                        file=source.name,
                        hints=[archs_hint(entries, number)],
                    )
    return found


def archs_hint(entries: bytes, number: int) -> Diagnostic:
    """What a source has code for, in words of -gencode."""
    from pylink.diagnostics.record import note  # noqa: PLC0415 -- a warning

    words: dict[str, None] = {}
    for entry in ENTRY.iter_unpack(entries):
        if entry[0] == number and entry[3] in CODE_WORDS:
            suffix = "a" if entry[6] & CHIP else "f" if entry[6] & FAMILY else ""
            words[f"{CODE_WORDS[entry[3]]}{entry[4]}{suffix}"] = None
    return note("archs-there", archs=", ".join(words) or "nothing")


def scan(group: list[Source], found: dict[Source, Hosted], sink: Sink) -> tuple[bytes, set[int]]:
    """The entries in sources of one arena, and which sources are damaged; fills `found`."""
    arena = group[0].arena
    entries, rows, faults = fatbin.find_entries(
        arena,
        b"".join(extent(source.offset, source.size) for source in group),
        bytes([source.kind for source in group]),
    )
    report_damage(faults, group, sink)
    for source, row in zip(group, SOURCE.iter_unpack(rows), strict=True):
        found[source] = Hosted(row, arena)
    return entries, {row[0] for row in FAULT.iter_unpack(faults)}


def choose(entries: bytes, chooser: Chooser) -> Iterator[tuple[Entry, bool]]:
    """The best entry of each container that has any; with False when none can be used."""
    best: Entry | None = None
    best_rank = -1
    rank = chooser.rank
    entry: Entry
    for entry in ENTRY.iter_unpack(entries):
        if best is not None and (entry[0] != best[0] or entry[1] != best[1]):
            yield best, best_rank >= 0
            best = None
        place = rank(entry[3], entry[4], entry[6])
        if best is None or place > best_rank:
            best, best_rank = entry, place
    if best is not None:
        yield best, best_rank >= 0


def add_piece(hosted: Hosted, source: Source, entry: Entry, unpacker: Unpacker, sink: Sink) -> None:
    """Add the payload of an entry to what was found in its source."""
    _, _, index, kind, sm, header_size, flags, offset, size, packed_size, full_size = entry
    start = offset + header_size
    view = memoryview(source.arena)
    in_host = source.kind in OF_HOST
    piece = Piece(source.name, PIECE_OF[kind], b"", arch=sm, embedded=True, hosted=in_host)

    def unpack() -> bytes:
        packed = view[start : start + packed_size]
        try:
            payload = unpacker.unpack(packed, flags, full_size, source.name)
            # What follows could not say which entry of which file this was.
            if kind == ENTRY_ELF and payload[:4] != ELF_MAGIC:
                raise DamagedPayload("its cubin is no ELF file")
        except DamagedPayload as damage:
            report_entry(source, index, str(damage), sink, damage.kind)
            return b""
        return payload

    if kind == ENTRY_LTOIR:
        piece.data = pack_entry(view[offset : start + size])  # nvJitLink decompresses it
    else:
        try:
            unpacker.reserve(flags, full_size)
        except DamagedPayload as damage:
            report_entry(source, index, str(damage), sink, damage.kind)
            return
        if kind == ENTRY_PTX:
            piece.data = unpack()
            piece.options = entry_text(view[offset:start])
        else:
            piece.later = unpack
            piece.size = full_size if is_compressed(flags) else size
            if is_compressed(flags):
                piece.packed = source.arena, start, packed_size, codec_of(flags)
    hosted.pieces.append(piece)
