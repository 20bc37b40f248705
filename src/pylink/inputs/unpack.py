"""Taking inputs apart: files and archive members to pieces, pieces to the cubins of the link.

Cubins come in the order of what they were in: direct inputs as they stand, members as they stand
in their archive, and a compiled PTX text where the text was. The result of LTO comes where the last
host object with LTO-IR was, and last where there is none.
"""

from __future__ import annotations

import os

from pylink._native import inputfiles
from pylink.facts.target import FAMILY_A
from pylink.inputs import kinds
from pylink.inputs.hosted import unpack_hosted
from pylink.inputs.loaded import Loaded, Opened
from pylink.inputs.payload import open_library
from pylink.inputs.pieces import ALWAYS, NEEDED, PIECE_KINDS, Hosted, Piece, Source
from pylink.inputs.references import host_references, identifiers
from pylink.inputs.selection import is_system, select, warn_of_skipped
from pylink.outputs.plan import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.inputs.references import References
    from pylink.inputs.sharedlib import Libraries
    from pylink.options import Input
    from pylink.outputs.plan import Identity
    from pylink.phases.init import Job
    from pylink.timing import CsvTiming

# What diagnostics call the result of LTO, as the table of -time does.
OPTIMIZED = "lto.cubin"

# Of a file with fewer bytes nvlink says that it could not open it; it ignores longer ones that it
# does not know.
LEAST_BYTES = 56


def unpack(
    job: Job, arena: bytes, extents: bytes, found: bytes, timing: CsvTiming, sink: Sink
) -> Loaded:
    """The cubins in inputs of the kinds `found`, a byte each; LinkError when there are errors."""
    sources = find_sources(job, arena, extents, found, sink)
    libraries: Libraries | None = None
    if any(source.kind == kinds.SHARED for source in sources):
        from pylink.inputs.sharedlib import Libraries  # noqa: PLC0415 -- few links have libraries

        libraries = Libraries()
        sources = [
            source
            for source in sources
            if source.kind != kinds.SHARED or libraries.take(source, sink)
        ]
    hosted = unpack_hosted(job, sources, libraries, sink)
    pieces = find_pieces(sources, hosted, sink)
    if not any(piece for piece in pieces if not is_system(job, piece.name)):
        _refuse_nothing(job, hosted, sink)
    if sink.errors:
        sink.stop()
    modules = [piece for piece in pieces if piece.kind == kinds.LTOIR]
    if not job.options.compiles:
        for piece in pieces:
            if piece.kind != kinds.CUBIN:
                sink.fatal("needs-compiler", file=piece.name)
    if modules and not job.optimizes:
        sink.fatal("lto-entry" if modules[0].embedded else "lto-file", file=modules[0].name)
    compile_ptx(job, pieces, timing, sink)
    cubins = [piece for piece in pieces if piece.kind == kinds.CUBIN]
    loaded = with_cubins(job, cubins, modules, sink)
    if sink.errors:  # what was decompressed only now
        sink.stop()
    opened = Opened(sources, hosted, libraries)
    if modules:  # what these need is known only when they are compiled
        loaded.opened = opened
        return loaded
    return settle(loaded, opened, sink)


def _refuse_nothing(job: Job, hosted: dict[Source, Hosted], sink: Sink) -> None:
    """Report that no input has code for the target, if some have code: nothing could run."""
    passed = [
        source
        for source, found in hosted.items()
        if found.containers and not (source.overlooked or is_system(job, source.name))
    ]
    if passed and not (sink.errors or job.options.suppress_arch_warning):
        sink.report("no-code-for-arch", arch=job.options.arch)


def known_references(loaded: Loaded) -> References | None:
    """What host code uses of a program that is still to be compiled, None for all of it."""
    assert loaded.opened is not None
    if not loaded.job.uses_host_info:
        return None
    sources = [one for one in loaded.opened.sources if not is_system(loaded.job, one.name)]
    return host_references([one for one in sources if not one.overlooked], loaded.opened.hosted)


def add_optimized(loaded: Loaded, cubin: bytes | None, sink: Sink) -> Loaded:
    """The link with the result of LTO, None for what is not linked, and all other files it takes.

    The cubin comes where the last host object with LTO-IR was, and last where there is none.
    """
    assert loaded.opened is not None
    rows = memoryview(loaded.extents).cast("Q")
    pieces = list(loaded.pieces)
    for number, piece in enumerate(pieces):
        start, size = rows[2 * number], rows[2 * number + 1]
        piece.data = loaded.arena[start : start + size]
        piece.later = piece.packed = None
    if cubin is not None:
        piece = Piece(OPTIMIZED, kinds.CUBIN, cubin)
        piece.number = len(loaded.opened.sources)
        pieces.insert(find_place(loaded), piece)
    linked = with_cubins(loaded.job, pieces, loaded.modules, sink)
    return settle(linked, loaded.opened, sink)


def find_place(loaded: Loaded) -> int:
    """Before which of the cubins the result of LTO comes."""
    hosted = [module.number for module in loaded.modules if module.hosted]
    if not hosted:
        return len(loaded.pieces)
    return sum(piece.number < hosted[-1] for piece in loaded.pieces)


def settle(loaded: Loaded, opened: Opened, sink: Sink) -> Loaded:
    """The link of what it takes of all sources; also settles what host code has a say in."""
    job, sources, hosted = loaded.job, opened.sources, opened.hosted
    with_optimized = [*sources, Source(OPTIMIZED, kinds.CUBIN, b"", 0, 0)]
    loaded = select(loaded, with_optimized)
    loaded.libraries = opened.libraries
    warn_of_skipped(loaded, with_optimized, sink)
    taken = {piece.number for piece in (*loaded.pieces, *loaded.modules)}
    registered = find_registered(job, sources, taken)
    if loaded.modules:
        unlisted = {sources[module.number] for module in loaded.modules if not module.hosted}
        registered = [one for one in registered if one not in unlisted]
        if not loaded.pieces:  # nvlink has the files of a whole program in the other direction
            registered.reverse()
    if job.options.register_link_binaries is not None:
        loaded.registered = identifiers(registered, hosted)
    if job.uses_host_info:
        looked_at = [
            one
            for number, one in enumerate(sources)
            if number in taken or not (one.overlooked or is_system(job, one.name))
        ]
        # The library's own kernels are no reason to leave out those of a program that names none.
        own = [one for one in looked_at if not is_system(job, one.name)]
        references = host_references(own, hosted)
        if references is not None and len(own) < len(looked_at):
            references = host_references(looked_at, hosted)
        loaded.references = references
    return loaded


def find_registered(job: Job, sources: list[Source], taken: set[int]) -> list[Source]:
    """The sources of which the host program must register device code, by nvlink's rule.

    A member that was not `taken` still counts where the host's linker may take it, unless it is
    of the device runtime.
    """
    return [
        source
        for number, source in enumerate(sources)
        if (
            number in taken
            or (source.demand in (ALWAYS, NEEDED) and not is_system(job, source.name))
        )
        and (source.kind in kinds.OF_HOST or not source.group)
    ]


def with_cubins(job: Job, pieces: list[Piece], modules: list[Piece], sink: Sink) -> Loaded:
    """What `load` gives for these cubins and, still to be compiled, LTO-IR."""
    sizes = [piece.size for piece in pieces]
    names = [piece.name for piece in pieces]
    try:
        packed = [piece.packed for piece in pieces]
        for codec in {one[3] for one in packed if one is not None}:
            open_library(codec)
        arena, extents = inputfiles.gather(sizes, lambda number: pieces[number].take(), packed)
    except MemoryError:
        name = names[sizes.index(max(sizes))]
        sink.fatal("cannot-read-file", file=name, reason="there is not enough memory")
    return Loaded(job, names, arena, extents, pieces, modules)


def find_sources(job: Job, arena: bytes, extents: bytes, found: bytes, sink: Sink) -> list[Source]:
    """The inputs, with the members of archives in their place."""
    sources: list[Source] = []
    rows = memoryview(extents).cast("Q")
    archives: set[Identity] = set()
    for number, (one, kind) in enumerate(zip(job.inputs, found, strict=True)):
        offset, size = rows[2 * number], rows[2 * number + 1]
        source = Source(one.name, kind, arena, offset, size)
        if kind in (kinds.ARCHIVE, kinds.THIN_ARCHIVE):
            source.group = number + 1
            source.whole = one.whole or job.options.whole_archive
            source.overlooked = one.skipped is not None
            sources += find_members(job, one, source, archives, sink)
        else:
            if is_shared(source):
                source.kind, source.library = kinds.SHARED, one.library
            sources.append(source)
    return sources


def is_shared(source: Source) -> bool:
    """Whether nvlink passes over an input of the command line.

    It does for ELF files of the type of shared libraries and of programs, and for texts that
    linkers of the host read in the place of a library.
    """
    if source.kind == kinds.UNKNOWN:
        return source.name.endswith(".so")
    at = source.offset + 16  # e_type
    return (
        source.kind == kinds.HOST
        and source.arena[at : at + 2] == b"\x03\x00"
        and not source.name.endswith(".cubin")  # which has to be for the device
    )


def find_members(
    job: Job, one: Input, archive: Source, before: set[Identity], sink: Sink
) -> list[Source]:
    """The members of an archive with code, in its order; nothing of a file that came `before`."""
    from pylink.inputs.archive import members  # noqa: PLC0415 -- many links have no archive

    file = identity(one.name) if one.data is None else None
    if file in before:
        return []
    if file is not None:
        before.add(file)
    return members(archive, job.plan, sink, lazy=job.options.lazy_archives)


def find_pieces(sources: list[Source], hosted: dict[Source, Hosted], sink: Sink) -> list[Piece]:
    """What the sources hold for the target, in their order."""
    pieces: list[Piece] = []
    for number, source in enumerate(sources):
        first = len(pieces)
        if source in hosted:
            if source.name.endswith(".cubin") and not hosted[source].containers:
                from pylink.locate.filehints import what_it_is  # noqa: PLC0415 -- an error

                sink.fatal("wrong-machine", file=source.name, hints=what_it_is(source.data))
            pieces += hosted[source].pieces
        elif source.kind in PIECE_KINDS:
            pieces.append(piece_of(source, source.kind))
        elif source.name.endswith(".cubin") or "." not in os.path.basename(source.name):
            # The reader of cubins says what is wrong, in nvlink's words.
            pieces.append(piece_of(source, kinds.CUBIN))
        else:
            from pylink.locate.filehints import what_it_is  # noqa: PLC0415 -- an error

            hints = what_it_is(source.data)
            if source.size < LEAST_BYTES:
                sink.fatal("cannot-open-input", file=source.name, hints=hints)
            sink.report("unknown-input", file=source.name, hints=hints)
        for piece in pieces[first:]:
            piece.number = number
    return pieces


def piece_of(source: Source, kind: int) -> Piece:
    """A source that is a piece as it stands."""
    if kind == kinds.CUBIN and source.size:
        return Piece(source.name, kind, b"", later=lambda: source.data, size=source.size)
    return Piece(source.name, kind, source.data)


def compile_ptx(job: Job, pieces: list[Piece], timing: CsvTiming, sink: Sink) -> None:
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
    cubins = ptxas.compile_ptx(requests, job, sink, timing)
    for piece, cubin in zip(texts, cubins, strict=True):
        piece.data = cubin
        piece.size = len(cubin)
        piece.kind = kinds.CUBIN
        if job.target.family == FAMILY_A and not piece.embedded:
            # As nvlink does, which compiles the file and loses the result.
            sink.report("ptx-file-unused", file=piece.name, arch=job.options.arch)
            pieces.remove(piece)
