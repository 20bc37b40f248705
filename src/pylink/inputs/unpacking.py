"""Unpacks inputs: files and archive members into code, and code into the cubins of the link.

Cubins keep the order of inputs, and of members in their archive; a compiled PTX text is at the
position of the text. The result of LTO is at the position of the last host object with LTO-IR, or
last without one; for releases from 13.5 on it comes first.
"""

from __future__ import annotations

import os

from pylink._native import payloads
from pylink._native.selection import find_missing
from pylink.facts import inputkinds
from pylink.facts.picknumbers import Demand, PickOrigin
from pylink.facts.target import FAMILY_A
from pylink.inputs import kinds
from pylink.inputs.compileinputs import CompileInput
from pylink.inputs.expansion import find_sources
from pylink.inputs.hostmachine import warn_of_machines
from pylink.inputs.hostobjects import scan, unpack_hosted
from pylink.inputs.loaded import Candidates, Loaded, OpenedInputs, ScannedInputs
from pylink.inputs.payload import open_libraries
from pylink.inputs.picks import Pick, pack_cubin_row
from pylink.inputs.references import host_references, list_registered_names
from pylink.inputs.selection import (
    count_before_runtime,
    find_system,
    is_system,
    select,
    warn_of_skipped,
)
from pylink.rowformats import PICK
from pylink.tables import extent_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    from pylink.diagnostics import Sink
    from pylink.inputs.contents import DeviceContents
    from pylink.inputs.picks import Picks
    from pylink.inputs.references import References
    from pylink.inputs.sources import Source, SourceBatch, Sources
    from pylink.phases.init import Job
    from pylink.timing import CsvTiming

    class Shared(Protocol):
        """Inputs that links share; SharedInputs of `pylink.phases.sharing` says what each does.

        That class is not named here, because its module needs `pylink.phases.load`, which uses this
        type: no two modules may need each other, even for types.
        """

        def batches_for(self, job: Job) -> list[SourceBatch] | None:
            """Return the batches with a link's inputs; None if it must read them itself."""
            ...

        def scan_inputs(
            self, job: Job, batches: Sequence[SourceBatch], sink: Sink
        ) -> ScannedInputs:
            """Return the device code in the inputs, without decompressing it."""
            ...

        def decompress(self, rows: bytes, arenas: list[bytes]) -> tuple[bytes, list[bytes]]:
            """Decompress payloads; return PickRows and arenas that replace `rows` and `arenas`."""
            ...

        def gather(self, rows: bytes, arenas: list[bytes]) -> tuple[bytes, bytes] | None:
            """Return an arena with the payloads of PickRows, and their extents; None on failure."""
            ...

        def keep_copies(self) -> None:
            """Copy the mapped inputs, before a link does what may take long."""
            ...


# Name of the result of LTO in diagnostics and in the table of -time.
LTO_CUBIN = "lto.cubin"

# nvlink reports that a file with fewer bytes cannot be opened, and ignores other unknown files.
LEAST_FILE_SIZE = 56

# Most cubins, and most bytes of them, in a link that is tried without the device runtime library.
# If the link needs the library, they are unpacked again, which is a small part of such a link.
MOST_SMALL = 64
SMALL_SIZE = 4 << 20


def unpack(
    job: Job,
    batches: Sequence[SourceBatch],
    timing: CsvTiming,
    sink: Sink,
    shared: Shared | None = None,
) -> Loaded:
    """Return the cubins of the inputs, which are given in batches; LinkError after errors.

    `shared` has inputs that other links have scanned and decompressed.
    """
    find = scan_inputs if shared is None else shared.scan_inputs
    scanned = find(job, batches, sink)
    sources, libraries = scanned.sources, scanned.libraries
    hosts, picked = unpack_hosted(job, scanned, sink)
    if job.options.cpu_arch is not None or len(set(hosts.machines())) > 1:
        warn_of_machines(job, hosts, sink)
    _classify_files(picked, sink)
    numbers_taken = picked.taken_sources()
    if all(is_system(job, sources.names[number]) for number in numbers_taken):
        _refuse_without_code(job, hosts, sink)
    if sink.errors:
        sink.stop()
    compile_inputs = picked.compile_inputs_in_order()
    modules = [piece for piece in compile_inputs if piece.kind == inputkinds.LTOIR]
    if compile_inputs and not job.options.compiles:
        sink.fatal("needs-compiler", file=compile_inputs[0].name)
    if modules and not job.optimizes:
        sink.fatal("lto-entry" if modules[0].embedded else "lto-file", file=modules[0].name)
    if compile_inputs and shared is not None:
        shared.keep_copies()
    compile_ptx(job, picked, timing, sink)
    rows, numbers = picked.cubins()
    loaded = None
    if not compile_inputs and libraries is None:
        loaded = _load_without_runtime(job, picked, rows, numbers, shared, sink)
    if loaded is None:
        loaded = _load_cubins(job, picked, rows, numbers, shared, sink)
    loaded.modules = modules
    opened = OpenedInputs(sources, hosts, libraries, set(numbers_taken))
    if modules:  # their references are known only after they are compiled
        loaded.opened = opened
        return loaded
    return finish_load(loaded, opened, sink)


def _load_without_runtime(
    job: Job,
    picked: Picks,
    rows: bytes,
    numbers: Sequence[int],
    shared: Shared | None,
    sink: Sink,
) -> Loaded | None:
    """Return the cubins of a small link that does not need the device runtime library.

    None for other links. To open a codec and to decompress the library can take as long as the
    rest of such a link.
    """
    if len(numbers) > MOST_SMALL:
        return None
    names = [picked.sources.names[picked.source_numbers[number]] for number in numbers]
    demands = bytes(picked.sources.demands[picked.source_numbers[number]] for number in numbers)
    count = count_before_runtime(job, names, demands)
    rows = rows[: PICK.size * count]
    if not count or sum(Pick(rows, number).full_size for number in range(count)) > SMALL_SIZE:
        return None
    loaded = _load_cubins(job, picked, rows, numbers[:count], shared, sink)
    is_needed = find_missing(loaded.arena, loaded.extents, with_driver=True)
    return None if is_needed else loaded


def _load_cubins(
    job: Job,
    picked: Picks,
    rows: bytes,
    numbers: Sequence[int],
    shared: Shared | None,
    sink: Sink,
) -> Loaded:
    """Return the cubins of PickRows; `numbers` are their numbers among all that are picked.

    Damaged payloads are reported, and end the link.
    """
    sources = picked.sources
    codecs = picked.codecs
    if len(numbers) <= MOST_SMALL:
        codecs = sum({1 << Pick(rows, number).codec for number in range(len(numbers))})
    open_libraries(codecs)
    source_numbers = list(map(picked.source_numbers.__getitem__, numbers))
    arenas = sources.arenas
    if shared is not None and codecs & ~1:
        rows, arenas = shared.decompress(rows, arenas)
    names = list(map(sources.names.__getitem__, source_numbers))
    in_place = None if shared is None else shared.gather(rows, arenas)
    if in_place is not None:
        loaded = Loaded(job, names, *in_place)
    else:
        loaded = gather_cubins(
            job, names, rows, arenas, lambda number: picked.take_cubin(numbers[number], sink), sink
        )
    loaded.source_numbers = source_numbers
    if sink.errors:  # a payload could not be decompressed
        sink.stop()
    return loaded


def scan_inputs(job: Job, batches: Sequence[SourceBatch], sink: Sink) -> ScannedInputs:
    """Scan the inputs without decompressing; damage is reported."""
    sources, libraries = find_sources(job, batches, sink)
    contents, faults = scan(sources)
    return ScannedInputs(contents, faults, libraries)


def _refuse_without_code(job: Job, contents: DeviceContents, sink: Sink) -> None:
    """Report that no input has code for the target, if inputs have device code at all."""
    options = job.options
    if sink.errors or options.suppress_arch_warning or options.allows_no_code:
        return
    sources = contents.sources
    if any(
        contents.container_count(number)
        and not (sources.is_overlooked(number) or is_system(job, sources.names[number]))
        for number in range(len(sources))
    ):
        sink.report("no-code-for-arch", arch=job.options.arch)


def known_references(loaded: Loaded) -> References | None:
    """Return the kernels that host code uses, before LTO compiles the program; None: keep all."""
    assert loaded.opened is not None
    if not loaded.job.compiles_by_host_info:
        return None
    sources = loaded.opened.sources
    unseen = find_system(loaded.job, sources.names) | sources.overlooked()
    seen = [number for number in range(len(sources)) if number not in unseen]
    return host_references(seen, loaded.opened.contents)


def add_optimized(
    loaded: Loaded, cubin: bytes | None, sink: Sink, *, first: bool = False
) -> Loaded:
    """Add the result of LTO to the link (None if it is not linked), and select its other files.

    The cubin comes `first`, or at the position of the last host object with LTO-IR, or last
    without one.
    """
    assert loaded.opened is not None
    rows = [
        pack_cubin_row(0, *extent_at(loaded.extents, number)) for number in range(len(loaded.names))
    ]
    names, source_numbers = list(loaded.names), list(loaded.source_numbers)
    if cubin is not None:
        place = 0 if first else _find_lto_position(loaded)
        rows.insert(place, pack_cubin_row(-1, 0, len(cubin)))
        names.insert(place, LTO_CUBIN)
        source_numbers.insert(place, len(loaded.opened.sources))
    data = cubin or b""
    linked = gather_cubins(
        loaded.job, names, b"".join(rows), [loaded.arena], lambda number: data, sink
    )
    linked.source_numbers, linked.modules = source_numbers, loaded.modules
    return finish_load(linked, loaded.opened, sink)


def _find_lto_position(loaded: Loaded) -> int:
    """Return the index among the cubins at which the result of LTO is inserted."""
    hosted = [module.number for module in loaded.modules if module.hosted]
    if not hosted:
        return len(loaded.source_numbers)
    return sum(number < hosted[-1] for number in loaded.source_numbers)


def finish_load(loaded: Loaded, opened: OpenedInputs, sink: Sink, lent: bytes = b"") -> Loaded:
    """Select the cubins that the link takes, and list what host code registers and uses.

    Modules that are borrowed from shared libraries have numbers after those of all sources; `lent`
    has a Demand for each.
    """
    job, sources, contents = loaded.job, opened.sources, opened.contents
    libraries = opened.libraries
    candidates = Candidates(loaded, opened) if libraries is not None and not lent else None
    loaded = select(loaded, sources, lent)
    loaded.libraries, loaded.candidates = libraries, candidates
    borrowed = libraries.borrowed if libraries is not None else set()
    if not lent:  # else the warning was given before
        warn_of_skipped(loaded, sources, sink)
    numbers = {*loaded.source_numbers, *(module.number for module in loaded.modules)}
    if job.options.register_link_binaries is not None:
        registered = _find_registered(job, sources, numbers)
        if loaded.modules:
            unlisted = {module.number for module in loaded.modules if not module.hosted}
            registered = [number for number in registered if number not in unlisted]
            if not loaded.source_numbers:  # nvlink lists the files of a whole program in reverse
                registered.reverse()
        loaded.registered = list_registered_names(registered, contents, opened.with_code)
    if job.uses_host_info:
        system = find_system(job, sources.names)
        unseen = ((system | sources.overlooked()) - numbers) | borrowed
        seen = [number for number in range(len(sources)) if number not in unseen]
        # Names of the runtime library's kernels alone must not remove a program's kernels.
        without_system = [number for number in seen if number not in system] if system else seen
        references = host_references(without_system, contents)
        if references is not None and len(without_system) < len(seen):
            references = host_references(seen, contents)
        loaded.references = references
    return loaded


def _find_registered(job: Job, sources: Sources, numbers: set[int]) -> list[int]:
    """Return the sources whose device code the host program must register, by nvlink's rule.

    `numbers` are the sources that are linked. Other inputs, and members of archives that the host
    linker may take, count unless they are of the device runtime. A member must be a host object.
    """
    return [
        number
        for number, name in enumerate(sources.names)
        if (
            number in numbers
            or (
                sources.demands[number] in (Demand.ALWAYS, Demand.NEEDED)
                and not is_system(job, name)
            )
        )
        and (sources.kinds[number] in kinds.OF_HOST or not sources.group(number))
    ]


def gather_cubins(
    job: Job,
    names: list[str],
    rows: bytes,
    arenas: list[bytes],
    produce: Callable[[int], bytes],
    sink: Sink,
) -> Loaded:
    """Copy the cubins of PickRows to a new arena.

    `produce(i)` makes the cubin of row `i` if it is in no arena, or native code cannot unpack it.
    """
    try:
        arena, extents = payloads.gather(rows, arenas, produce, job.pages)
    except MemoryError:
        sizes = [Pick(rows, number).full_size for number in range(len(names))]
        name = names[sizes.index(max(sizes))]
        sink.fatal("cannot-read-file", file=name, reason="there is not enough memory")
    return Loaded(job, names, arena, extents)


def _classify_files(picked: Picks, sink: Sink) -> None:
    """Classify the sources that are not cubins and have no entries; refuse unknown files."""
    sources = picked.sources
    host_files = [number for number in picked.bare if sources.names[number].endswith(".cubin")]
    files = [
        number for number in picked.special if Pick(picked.rows, number).embedded == PickOrigin.FILE
    ]
    places = [
        *((number, -1) for number in host_files),
        *((picked.source_numbers[number], number) for number in files),
    ]
    for source_number, number in sorted(places):
        source = sources[source_number]
        if number >= 0 and source.kind in (inputkinds.PTX, inputkinds.LTOIR):
            picked.compile_inputs[number] = CompileInput(
                source.name, source.kind, source.data, number=source_number
            )
        elif number >= 0 and (
            source.name.endswith(".cubin") or "." not in os.path.basename(source.name)
        ):
            # The reader of cubins reports the error, in nvlink's words.
            picked.plain.add(number)
        else:
            _refuse_file(source, sink, is_host=number < 0)


def _refuse_file(source: Source, sink: Sink, *, is_host: bool) -> None:
    """Report, like nvlink, a file that cannot be an input; `is_host`: a host object `*.cubin`."""
    from pylink.inputs.filehints import file_kind_hints

    hints = file_kind_hints(source.data)
    if is_host:
        sink.fatal("wrong-machine", file=source.name, hints=hints)
    if source.size < LEAST_FILE_SIZE:
        sink.fatal("cannot-open-input", file=source.name, hints=hints)
    sink.report("unknown-input", file=source.name, hints=hints)


def compile_ptx(job: Job, picked: Picks, timing: CsvTiming, sink: Sink) -> None:
    """Compile all picked PTX to cubins, which replace it in `picked`."""
    numbers = [
        number
        for number in sorted(picked.compile_inputs)
        if picked.compile_inputs[number].kind == inputkinds.PTX
    ]
    if not numbers:
        return
    from pylink.subtools import ptxas

    texts = [picked.compile_inputs[number] for number in numbers]
    requests = [
        # The table of -time calls an entry of a fat binary `ptx` and its result `cubin`.
        ptxas.CompileRequest(
            "ptx" if text.embedded else text.name,
            text.name,
            "cubin" if text.embedded else "",
            text.data,
            job.options.arch,
            options=text.options,
        )
        for text in texts
    ]
    cubins = ptxas.compile_ptx(requests, job, sink, timing)
    for number, text, cubin in zip(numbers, texts, cubins, strict=True):
        text.data = cubin
        text.kind = inputkinds.CUBIN
        if job.target.family == FAMILY_A and not text.embedded:
            # nvlink, too, compiles the file and drops the result.
            sink.report("ptx-file-unused", file=text.name, arch=job.options.arch)
            del picked.compile_inputs[number]
