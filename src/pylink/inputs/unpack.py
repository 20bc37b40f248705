"""Taking inputs apart: files and archive members to pieces, pieces to the cubins of the link.

Cubins come in the order of what they were in: direct inputs as they stand, members as they stand
in their archive, and a compiled PTX text where the text was. The result of LTO comes last.
"""

from __future__ import annotations

import os

from pylink._native import elfread
from pylink.inputs import kinds
from pylink.inputs.hosted import unpack_hosted
from pylink.inputs.pieces import PIECE_KINDS, Piece, Source
from pylink.inputs.references import host_references, identifiers
from pylink.phases.load import Loaded
from pylink.target import FAMILY_A

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.diagnostics import Sink
    from pylink.inputs.hosted import Hosted
    from pylink.inputs.references import References
    from pylink.options import Input
    from pylink.phases.init import Job
    from pylink.timing import CsvTiming


def unpack(
    job: Job, arena: bytes, extents: bytes, found: bytes, timing: CsvTiming | None, sink: Sink
) -> Loaded:
    """The cubins in inputs of the kinds `found`, a byte each; LinkError when there are errors."""
    sources = find_sources(job.inputs, arena, extents, found, sink)
    hosted = unpack_hosted(job, sources, sink)
    pieces = find_pieces(sources, hosted, sink)
    job.registered = identifiers(sources, hosted)
    if sink.errors:
        sink.stop()
    modules = [piece for piece in pieces if piece.kind == kinds.LTOIR]
    if modules and not job.optimizes:
        sink.fatal("lto-entry" if modules[0].embedded else "lto-file", file=modules[0].name)
    compile_ptx(job, pieces, timing, sink)
    cubins = [piece for piece in pieces if piece.kind == kinds.CUBIN]
    references = host_references(sources, hosted) if job.uses_host_info else None
    return with_cubins(job, cubins, modules, references)


def with_cubins(
    job: Job, pieces: list[Piece], modules: list[Piece], references: References | None
) -> Loaded:
    """What `load` gives for these cubins and, still to be compiled, LTO-IR."""
    data: list[bytes | None] = [piece.data for piece in pieces]
    sizes = [len(piece.data) for piece in pieces]
    arena, extents, _, _ = elfread.read_files([None] * len(pieces), sizes, data)
    for piece in pieces:
        piece.data = b""  # the arena has them
    names = [piece.name for piece in pieces]
    return Loaded(job, names, arena, extents, pieces, modules, references)


def find_sources(
    inputs: Sequence[Input], arena: bytes, extents: bytes, found: bytes, sink: Sink
) -> list[Source]:
    """The inputs, with the members of archives in their place."""
    sources: list[Source] = []
    rows = memoryview(extents).cast("Q")
    for number, (one, kind) in enumerate(zip(inputs, found, strict=True)):
        offset, size = rows[2 * number], rows[2 * number + 1]
        source = Source(one.name, kind, arena, offset, size, library=one.library)
        if kind in (kinds.ARCHIVE, kinds.THIN_ARCHIVE):
            sources += find_members(source, sink)
        else:
            sources.append(source)
    return sources


def find_members(archive: Source, sink: Sink) -> list[Source]:
    """The members of an archive that are to be linked, in its order."""
    from pylink.inputs.archive import members  # noqa: PLC0415 -- many links have no archive

    return members(archive, sink)


def find_pieces(sources: list[Source], hosted: dict[Source, Hosted], sink: Sink) -> list[Piece]:
    """What the sources hold for the target, in their order."""
    pieces: list[Piece] = []
    for source in sources:
        if source in hosted:
            if source.name.endswith(".cubin") and not hosted[source].containers:
                sink.fatal("wrong-machine", file=source.name)
            pieces += hosted[source].pieces
        elif source.kind in PIECE_KINDS:
            pieces.append(Piece(source.name, source.kind, source.data))
        elif source.kind == kinds.EMPTY:
            sink.report("empty-file", file=source.name)
        elif source.name.endswith(".cubin") or "." not in os.path.basename(source.name):
            # The reader of cubins says what is wrong, in nvlink's words.
            pieces.append(Piece(source.name, kinds.CUBIN, source.data))
        else:
            sink.report("unknown-input", file=source.name)
    return pieces


def compile_ptx(job: Job, pieces: list[Piece], timing: CsvTiming | None, sink: Sink) -> None:
    """Make cubins of all PTX among the pieces."""
    texts = [piece for piece in pieces if piece.kind == kinds.PTX]
    if not texts:
        return
    from pylink.subtools import ptxas  # noqa: PLC0415 -- few links have PTX

    requests = [
        # -time knows an entry of a fat binary as `ptx` and its result as `cubin`.
        ptxas.Request(
            "ptx" if piece.embedded else piece.name,
            piece.name,
            "cubin" if piece.embedded else "",
            piece.data,
            job.options.arch,
            options=piece.options,
        )
        for piece in texts
    ]
    cubins = ptxas.compile_ptx(requests, job.options, sink, timing)
    for piece, cubin in zip(texts, cubins, strict=True):
        piece.data = cubin
        piece.kind = kinds.CUBIN
        if job.target.family == FAMILY_A and not piece.embedded:
            # As nvlink does, which compiles the file and loses the result.
            sink.report("ptx-file-unused", file=piece.name, arch=job.options.arch)
            pieces.remove(piece)
