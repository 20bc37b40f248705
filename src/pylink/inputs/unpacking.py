"""Taking inputs apart: files and archive members to pieces, pieces to the cubins of the link.

Cubins come in the order of what they were in: direct inputs as they stand, members as they stand
in their archive, and a compiled PTX text where the text was. The result of LTO comes where the last
host object with LTO-IR was, and last where there is none; for releases from 13.5 on it comes first.
"""

from __future__ import annotations

import os

from pylink._native import inputfiles
from pylink.facts.target import FAMILY_A
from pylink.inputs import kinds
from pylink.inputs.expansion import find_sources
from pylink.inputs.hostmachine import warn_of_machines
from pylink.inputs.hostobjects import scan, unpack_hosted
from pylink.inputs.loaded import Candidates, Contents, Loaded, OpenedInputs
from pylink.inputs.payload import open_libraries
from pylink.inputs.picks import FILE, Pick, row_at
from pylink.inputs.pieces import Piece
from pylink.inputs.references import host_references, identifiers
from pylink.inputs.selection import find_system, is_system, select, warn_of_skipped
from pylink.inputs.sources import ALWAYS, NEEDED
from pylink.tables import extent_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    from pylink.diagnostics import Sink
    from pylink.inputs.contents import DeviceContents
    from pylink.inputs.picks import Picks
    from pylink.inputs.references import References
    from pylink.inputs.sources import Run, Source, Sources
    from pylink.phases.init import Job
    from pylink.timing import CsvTiming

    class Shared(Protocol):
        """What links have in common: `pylink.phases.sharing` has it."""

        def give(self, job: Job) -> list[Run] | None: ...

        def look_into(self, job: Job, runs: Sequence[Run], sink: Sink) -> Contents: ...

        def decompress(self, rows: bytes, arenas: list[bytes]) -> tuple[bytes, list[bytes]]: ...

        def gather(self, rows: bytes, arenas: list[bytes]) -> tuple[bytes, bytes] | None: ...


# What diagnostics call the result of LTO, as the table of -time does.
OPTIMIZED = "lto.cubin"

# nvlink says of a shorter file that it could not be opened, and ignores longer files of unknown
# kind.
LEAST_BYTES = 56


def unpack(
    job: Job,
    inputs: Sequence[Run],
    timing: CsvTiming,
    sink: Sink,
    shared: Shared | None = None,
) -> Loaded:
    """The cubins in the inputs, in runs; LinkError when there are errors.

    `shared` knows what other links have found and decompressed.
    """
    find = look_into if shared is None else shared.look_into
    contents = find(job, inputs, sink)
    sources, libraries = contents.sources, contents.libraries
    hosts, picked = unpack_hosted(job, contents, sink)
    if job.options.cpu_arch is not None or len(set(hosts.machines())) > 1:
        warn_of_machines(job, hosts, sink)
    take_files(picked, sink)
    numbers_taken = picked.taken()
    if all(is_system(job, sources.names[number]) for number in numbers_taken):
        _refuse_nothing(job, hosts, sink)
    if sink.errors:
        sink.stop()
    pieces = picked.pieces_in_order()
    modules = [piece for piece in pieces if piece.kind == kinds.LTOIR]
    if pieces and not job.options.compiles:
        sink.fatal("needs-compiler", file=pieces[0].name)
    if modules and not job.optimizes:
        sink.fatal("lto-entry" if modules[0].embedded else "lto-file", file=modules[0].name)
    compile_ptx(job, picked, timing, sink)
    rows, numbers = picked.cubins()
    open_libraries(picked.codecs)
    homes = list(map(picked.homes.__getitem__, numbers))
    arenas = sources.arenas
    if shared is not None and picked.codecs:
        rows, arenas = shared.decompress(rows, arenas)
    names = list(map(sources.names.__getitem__, homes))
    in_place = None if shared is None else shared.gather(rows, arenas)
    if in_place is not None:
        loaded = Loaded(job, names, *in_place)
    else:
        loaded = with_cubins(
            job, names, rows, arenas, lambda number: picked.take(numbers[number], sink), sink
        )
    loaded.homes, loaded.modules = homes, modules
    if sink.errors:  # what was decompressed only now
        sink.stop()
    opened = OpenedInputs(sources, hosts, libraries, set(numbers_taken))
    if modules:  # what these need is known only when they are compiled
        loaded.opened = opened
        return loaded
    return settle(loaded, opened, sink)


def look_into(job: Job, inputs: Sequence[Run], sink: Sink) -> Contents:
    """What is in the inputs, with nothing decompressed; what is wrong with them is reported."""
    sources, libraries = find_sources(job, inputs, sink)
    contents, faults = scan(sources)
    return Contents(contents, faults, libraries)


def _refuse_nothing(job: Job, contents: DeviceContents, sink: Sink) -> None:
    """Report that no input has code for the target, if some have code: nothing could run."""
    options = job.options
    if sink.errors or options.suppress_arch_warning or options.allows_no_code:
        return
    sources = contents.sources
    if any(
        contents.containers(number)
        and not (sources.is_overlooked(number) or is_system(job, sources.names[number]))
        for number in range(len(sources))
    ):
        sink.report("no-code-for-arch", arch=job.options.arch)


def known_references(loaded: Loaded) -> References | None:
    """What host code uses of a program that is still to be compiled, None for all of it."""
    assert loaded.opened is not None
    if not loaded.job.compiles_by_host_info:
        return None
    sources = loaded.opened.sources
    unseen = find_system(loaded.job, sources.names) | sources.overlooked()
    looked_at = [number for number in range(len(sources)) if number not in unseen]
    return host_references(looked_at, loaded.opened.contents)


def add_optimized(
    loaded: Loaded, cubin: bytes | None, sink: Sink, *, first: bool = False
) -> Loaded:
    """The link with the result of LTO, None for what is not linked, and all other files it takes.

    The cubin comes `first`, or where the last host object with LTO-IR was, and last where there is
    none.
    """
    assert loaded.opened is not None
    rows = [row_at(0, *extent_at(loaded.extents, number)) for number in range(len(loaded.names))]
    names, homes = list(loaded.names), list(loaded.homes)
    if cubin is not None:
        place = 0 if first else find_place(loaded)
        rows.insert(place, row_at(-1, 0, len(cubin)))
        names.insert(place, OPTIMIZED)
        homes.insert(place, len(loaded.opened.sources))
    data = cubin or b""
    linked = with_cubins(
        loaded.job, names, b"".join(rows), [loaded.arena], lambda number: data, sink
    )
    linked.homes, linked.modules = homes, loaded.modules
    return settle(linked, loaded.opened, sink)


def find_place(loaded: Loaded) -> int:
    """Before which of the cubins the result of LTO comes."""
    hosted = [module.number for module in loaded.modules if module.hosted]
    if not hosted:
        return len(loaded.homes)
    return sum(home < hosted[-1] for home in loaded.homes)


def settle(loaded: Loaded, opened: OpenedInputs, sink: Sink, lent: bytes = b"") -> Loaded:
    """The link of what it takes of all sources; also settles what host code has a say in.

    Modules that libraries lend have numbers after all sources, and the demands `lent`.
    """
    job, sources, contents = loaded.job, opened.sources, opened.contents
    libraries = opened.libraries
    candidates = Candidates(loaded, opened) if libraries is not None and not lent else None
    loaded = select(loaded, sources, lent)
    loaded.libraries, loaded.candidates = libraries, candidates
    borrowed = libraries.borrowed if libraries is not None else set()
    if not lent:  # else they were warned of before
        warn_of_skipped(loaded, sources, sink)
    numbers = {*loaded.homes, *(module.number for module in loaded.modules)}
    if job.options.register_link_binaries is not None:
        registered = find_registered(job, sources, numbers)
        if loaded.modules:
            unlisted = {module.number for module in loaded.modules if not module.hosted}
            registered = [number for number in registered if number not in unlisted]
            if not loaded.homes:  # nvlink has the files of a whole program in the other direction
                registered.reverse()
        loaded.registered = identifiers(registered, contents, opened.with_code)
    if job.uses_host_info:
        system = find_system(job, sources.names)
        unseen = ((system | sources.overlooked()) - numbers) | borrowed
        looked_at = [number for number in range(len(sources)) if number not in unseen]
        # The library's own kernels are not a reason to omit those of a program that names none.
        own = [number for number in looked_at if number not in system] if system else looked_at
        references = host_references(own, contents)
        if references is not None and len(own) < len(looked_at):
            references = host_references(looked_at, contents)
        loaded.references = references
    return loaded


def find_registered(job: Job, sources: Sources, numbers: set[int]) -> list[int]:
    """The sources of which the host program must register device code, by nvlink's rule.

    A member that was not `taken` still counts where the host's linker may take it, unless it is
    of the device runtime.
    """
    return [
        number
        for number, name in enumerate(sources.names)
        if (
            number in numbers
            or (sources.demands[number] in (ALWAYS, NEEDED) and not is_system(job, name))
        )
        and (sources.kinds[number] in kinds.OF_HOST or not sources.group(number))
    ]


def with_cubins(
    job: Job,
    names: list[str],
    rows: bytes,
    arenas: list[bytes],
    produce: Callable[[int], bytes],
    sink: Sink,
) -> Loaded:
    """What `load` gives for the cubins of these PickRows; `produce` gives what is in no arena."""
    try:
        arena, extents = inputfiles.gather(rows, arenas, produce)
    except MemoryError:
        sizes = [Pick(rows, number).full_size for number in range(len(names))]
        name = names[sizes.index(max(sizes))]
        sink.fatal("cannot-read-file", file=name, reason="there is not enough memory")
    return Loaded(job, names, arena, extents)


def take_files(picked: Picks, sink: Sink) -> None:
    """Settle what is taken of sources that are not cubins and have no entries."""
    sources = picked.sources
    wrong = [number for number in picked.bare if sources.names[number].endswith(".cubin")]
    odd = [number for number in picked.odd if Pick(picked.rows, number).embedded == FILE]
    places = [
        *((number, -1) for number in wrong),
        *((picked.homes[number], number) for number in odd),
    ]
    for home, number in sorted(places):
        source = sources[home]
        if number >= 0 and source.kind in (kinds.PTX, kinds.LTOIR):
            picked.pieces[number] = Piece(source.name, source.kind, source.data, number=home)
        elif number >= 0 and (
            source.name.endswith(".cubin") or "." not in os.path.basename(source.name)
        ):
            # The reader of cubins says what is wrong, in nvlink's words.
            picked.plain.add(number)
        else:
            _refuse_file(source, sink, is_host=number < 0)


def _refuse_file(source: Source, sink: Sink, *, is_host: bool) -> None:
    from pylink.inputs.filehints import what_it_is

    hints = what_it_is(source.data)
    if is_host:
        sink.fatal("wrong-machine", file=source.name, hints=hints)
    if source.size < LEAST_BYTES:
        sink.fatal("cannot-open-input", file=source.name, hints=hints)
    sink.report("unknown-input", file=source.name, hints=hints)


def compile_ptx(job: Job, picked: Picks, timing: CsvTiming, sink: Sink) -> None:
    """Make cubins of all PTX among what was picked."""
    numbers = [
        number for number in sorted(picked.pieces) if picked.pieces[number].kind == kinds.PTX
    ]
    if not numbers:
        return
    from pylink.subtools import ptxas

    texts = [picked.pieces[number] for number in numbers]
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
    for number, piece, cubin in zip(numbers, texts, cubins, strict=True):
        piece.data = cubin
        piece.kind = kinds.CUBIN
        if job.target.family == FAMILY_A and not piece.embedded:
            # As nvlink does, which compiles the file and loses the result.
            sink.report("ptx-file-unused", file=piece.name, arch=job.options.arch)
            del picked.pieces[number]
