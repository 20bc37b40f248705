"""Part of load: borrows device code from libraries that another image registers.

Code is borrowed only if an executable has undefined references, which nvlink reports as errors. So
links that work with nvlink do not change. The libraries' modules count as members of an archive at
the end of the link. docs/shared-libraries.md says what is borrowed, and with which effects.
"""

from __future__ import annotations

import os

from pylink._native import elfread, pools, resolve, selection
from pylink.diagnostics.errors import reason_of
from pylink.facts import inputkinds
from pylink.facts.picknumbers import Demand, EntryKind
from pylink.files.reading import MAX_SIZE, Incoming
from pylink.inputs.damage import report_damage
from pylink.inputs.hostobjects import archs_hint, make_compile_input, pick_entries, scan
from pylink.inputs.payload import open_libraries
from pylink.inputs.picks import Pick, pack_cubin_row
from pylink.inputs.references import variable_patterns
from pylink.inputs.selection import find_system, select
from pylink.inputs.sharedlib import module_ids
from pylink.inputs.sources import SourceBatch, Sources
from pylink.inputs.unpacking import compile_ptx, finish_load, gather_cubins
from pylink.phases.results import Merged, make_objects
from pylink.phases.roots import select_kernels
from pylink.rowformats import ENTRY
from pylink.tables import entity_name, extent, extent_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.diagnostics import Sink
    from pylink.inputs.contents import DeviceContents
    from pylink.inputs.loaded import Candidates, Loaded
    from pylink.inputs.sharedlib import Libraries
    from pylink.inputs.sources import Library
    from pylink.timing import CsvTiming


class LendableModules:
    """Modules of libraries that a link could use but not register; `loaded` has their cubins.

    Three lists have an item for each cubin: `ids` its module id, `libraries` the library that lends
    it, `places` the numbers of its source and container in `contents`. `contents` is the device
    code of all libraries.
    """

    __slots__ = ("contents", "ids", "libraries", "loaded", "places")

    def __init__(
        self,
        loaded: Loaded,
        contents: DeviceContents,
        ids: list[bytes],
        libraries: list[Library],
        places: list[tuple[int, int]],
    ) -> None:
        self.loaded = loaded
        self.contents = contents
        self.ids = ids
        self.libraries = libraries
        self.places = places


def borrow(loaded: Loaded, libraries: Libraries, timing: CsvTiming, sink: Sink) -> Loaded:
    """Return `loaded` with modules of libraries that define names which it lacks.

    `loaded` itself if no module of a library helps.
    """
    candidates, loaded.candidates = loaded.candidates, None  # no later phase needs them
    if candidates is None or not loaded.job.executable:
        return loaded
    lenders = libraries.lenders()
    if not lenders or not selection.find_missing(loaded.arena, loaded.extents):
        return loaded
    undefined_names = find_undefined(loaded)
    if not undefined_names:
        return loaded
    lendable = _read_modules(loaded, lenders, timing, sink)
    if sink.errors:
        sink.stop()
    if lendable is None:
        return loaded
    needed = _find_needed(candidates, lendable, sink)
    if not needed:
        return loaded
    first_source = len(candidates.opened.sources) + 1
    # With `_insert_modules`, host code selects the kernels that are kept, except for borrowed ones.
    # So the sources are marked before.
    libraries.borrowed |= {first_source + number for number in needed}
    combined = _insert_modules(candidates, lendable, needed, sink)
    if undefined_names.issubset(selection.find_missing(combined.arena, combined.extents)):
        libraries.borrowed -= {first_source + number for number in needed}
        return loaded
    _note_borrowed(lendable, needed, libraries, first_source, sink)
    return combined


def find_undefined(loaded: Loaded) -> set[bytes]:
    """Return the names that an executable of these cubins lacks.

    Empty if a cubin is damaged, or if two symbols of one name contradict each other.
    """
    files, sections, symbols, faults = elfread.parse(loaded.arena, loaded.extents)
    if faults:
        return set()
    # At least the first file, and files of another toolkit, target or flags than the file before.
    changed = [files[number] for number in elfread.find_changes(files)]
    merged = Merged(make_objects(loaded, files, sections, symbols, changed).seal())
    if resolve.resolve(merged):
        return set()
    merged.replace_sections(pools.cut_pools(merged))
    resolve.find_live(merged, select_kernels(merged), keep_all=False)
    return {os.fsencode(entity_name(merged, entity)) for entity in resolve.find_undefined(merged)}


def _read_modules(
    loaded: Loaded, lenders: dict[Library, set[bytes]], timing: CsvTiming, sink: Sink
) -> LendableModules | None:
    """Read the modules that libraries lend, with PTX compiled.

    `lenders` has the module ids that each library can lend. None without code for the target, and
    if a library is damaged, or has another number of ids than of containers.
    """
    job = loaded.job
    sources = Sources()
    for library in lenders:
        data = _read_library(loaded, library, sink)
        sources.add(
            SourceBatch(data, [library.file], bytes([inputkinds.SHARED]), extent(0, len(data)))
        )
        sources.size += len(data)
    contents, faults = scan(sources)
    if faults:
        report_damage(faults, sources, sink)
        return None
    files = list(lenders)
    ids_of_library: list[list[bytes]] = []  # by library: the module id of each container
    chosen: dict[int, set[int]] = {}  # by library: the numbers of containers to borrow
    ids_seen: set[bytes] = set()
    for number, (library, wanted_ids) in enumerate(lenders.items()):
        ids = module_ids(contents.ids(number))
        ids_of_library.append(ids)
        if len(ids) != contents.container_count(number):
            sink.report(
                "library-ids",
                file=library.file,
                ids=len(ids),
                containers=contents.container_count(number),
            )
            return None
        # A module that several libraries have is taken from the first.
        container_of = {
            identifier: index for index, identifier in enumerate(ids) if identifier in wanted_ids
        }
        chosen[number] = {
            index for identifier, index in container_of.items() if identifier not in ids_seen
        }
        ids_seen |= container_of.keys()
    picked, unmatched = pick_entries(job, contents, faults, chosen, sink)
    for number in picked.special:
        pick = Pick(picked.rows, number)
        if pick.kind == inputkinds.PTX and job.options.compiles:
            compile_input = make_compile_input(pick, picked, sink)
            if compile_input is not None:
                picked.compile_inputs[number] = compile_input
    compile_ptx(job, picked, timing, sink)
    if not job.options.suppress_arch_warning:
        for number in unmatched:
            hints = [archs_hint(contents.entries, number)]
            sink.report(
                "arch-not-found", arch=job.options.arch, file=sources.names[number], hints=hints
            )
    rows, numbers = picked.cubins()
    if not numbers:
        return None
    open_libraries(picked.codecs)
    picks = [Pick(picked.rows, number) for number in numbers]
    modules = gather_cubins(
        job,
        [sources.names[pick.source] for pick in picks],
        rows,
        sources.arenas,
        lambda number: picked.take_cubin(numbers[number], sink),
        sink,
    )
    return LendableModules(
        modules,
        contents,
        [ids_of_library[pick.source][pick.container] for pick in picks],
        [files[pick.source] for pick in picks],
        [(pick.source, pick.container) for pick in picks],
    )


def _read_library(loaded: Loaded, library: Library, sink: Sink) -> bytes:
    """Return the bytes of a library, from memory or from its file."""
    if library.source is not None:
        return library.source.data
    loaded.job.plan.check_input(library.file, sink)
    try:
        with Incoming(library.file, pipes=False) as stream:
            return stream.read(min(stream.size, MAX_SIZE))
    except (OSError, ValueError) as error:
        sink.fatal("cannot-read-file", file=library.file, reason=reason_of(error))


def _find_needed(candidates: Candidates, lendable: LendableModules, sink: Sink) -> list[int]:
    """Return the numbers of the lendable modules that the link needs.

    These are the modules that it would take if they were members of an archive after all inputs.
    """
    count, first_source = len(lendable.ids), len(candidates.opened.sources) + 1
    combined = combine(candidates, lendable, range(count), len(candidates.loaded.names), sink)
    selected = select(combined, candidates.opened.sources, bytes([Demand.NEEDED]) * count)
    return [number - first_source for number in selected.source_numbers if number >= first_source]


def _insert_modules(
    candidates: Candidates, lendable: LendableModules, needed: Sequence[int], sink: Sink
) -> Loaded:
    """Return the link with the modules `needed` inserted.

    With them it chooses again which members of archives it takes. The modules come in front of the
    device runtime, so that the runtime is not linked for symbols which they define.
    """
    names = candidates.loaded.names
    position = min(find_system(candidates.loaded.job, names), default=len(names))
    combined = combine(candidates, lendable, needed, position, sink)
    return finish_load(
        combined, candidates.opened, sink, bytes([Demand.ALWAYS]) * len(lendable.ids)
    )


def combine(
    candidates: Candidates,
    lendable: LendableModules,
    numbers: Sequence[int],
    position: int,
    sink: Sink,
) -> Loaded:
    """Return all loaded cubins, with the modules `numbers` inserted before cubin `position`."""
    loaded, modules = candidates.loaded, lendable.loaded
    rows = [
        pack_cubin_row(0, *extent_at(loaded.extents, item)) for item in range(len(loaded.names))
    ]
    rows[position:position] = [
        pack_cubin_row(1, *extent_at(modules.extents, item)) for item in numbers
    ]
    names, source_numbers = list(loaded.names), list(loaded.source_numbers)
    names[position:position] = [modules.names[item] for item in numbers]
    source_numbers[position:position] = [
        len(candidates.opened.sources) + 1 + item for item in numbers
    ]
    arenas = [loaded.arena, modules.arena]
    combined = gather_cubins(loaded.job, names, b"".join(rows), arenas, lambda number: b"", sink)
    combined.source_numbers = source_numbers
    return combined


def _note_borrowed(
    lendable: LendableModules,
    borrowed: Sequence[int],
    libraries: Libraries,
    first_source: int,
    sink: Sink,
) -> None:
    """Record the borrowed modules in `libraries`; warn of PTX that the driver will not get.

    That is the PTX of modules that the program cannot register. `borrowed` has the numbers of the
    modules; the source of module 0 has the number `first_source`.
    """
    if not libraries.optional:
        libraries.written = variable_patterns(
            lendable.contents, range(len(lendable.contents.sources))
        )
    with_ptx = {
        (source, container)
        for source, container, _, kind, *_ in ENTRY.iter_unpack(lendable.contents.entries)
        if kind == EntryKind.PTX
    }
    unlisted: dict[Library, bytes] = {}
    for number in borrowed:
        identifier, library = lendable.ids[number], lendable.libraries[number]
        libraries.copied[first_source + number] = libraries.owner(identifier)
        # The id becomes part of an identifier in source code, which limits its characters.
        is_name = identifier.isascii() and identifier.replace(b"_", b"a").isalnum()
        if is_name and any(identifier in other.wrappers for other in libraries.libraries):
            libraries.lent.append(os.fsdecode(identifier))
        elif lendable.places[number] in with_ptx:
            unlisted.setdefault(library, identifier)
    for library, identifier in unlisted.items():
        sink.report("library-unlisted", file=library.file, id=os.fsdecode(identifier))
