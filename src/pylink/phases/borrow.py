"""Part of load: device code of libraries that another image registers, for links that lack it.

nvlink ends such a link with an error, and what it links is left as it is: code is only borrowed
when an executable has undefined references. Then the libraries' modules count as members of an
archive at the end of the link. docs/shared-libraries.md has what is borrowed, and what that means.
"""

from __future__ import annotations

import os

from pylink._native import elfread, pools, resolve, selection
from pylink.diagnostics.errors import reason_of
from pylink.facts.releases import release_to_follow
from pylink.files.reading import MAX_SIZE, Incoming
from pylink.inputs import kinds
from pylink.inputs.choice import ENTRY_PTX
from pylink.inputs.damage import report_damage
from pylink.inputs.hostobjects import archs_hint, pick_entries, scan, take_odd
from pylink.inputs.payload import open_libraries
from pylink.inputs.picks import Pick, row_at
from pylink.inputs.references import variable_patterns
from pylink.inputs.selection import find_system, select
from pylink.inputs.sharedlib import module_ids
from pylink.inputs.sources import ALWAYS, NEEDED, Run, Sources
from pylink.inputs.unpacking import compile_ptx, settle, with_cubins
from pylink.phases.results import Merged, Objects
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
    """Modules that could be borrowed: `loaded` has the cubins, `ids` and `libraries` that of each.

    `found` is what was found in the files, and `places` has source and container of each cubin.
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
    """The link with what it lacks and libraries have; `loaded` itself where that is nothing."""
    candidates, loaded.candidates = loaded.candidates, None
    if candidates is None or not loaded.job.executable:
        return loaded
    lenders = libraries.lenders()
    if not lenders or not selection.find_missing(loaded.arena, loaded.extents):
        return loaded
    missing = find_undefined(loaded)
    if not missing:
        return loaded
    lent = read_modules(loaded, lenders, timing, sink)
    if sink.errors:
        sink.stop()
    if lent is None:
        return loaded
    needed = find_needed(candidates, lent, sink)
    if not needed:
        return loaded
    first = len(candidates.opened.sources) + 1
    # Before the host code of sources is asked for kernels: these are not roots.
    libraries.borrowed |= {first + number for number in needed}
    combined = take(candidates, lent, needed, sink)
    if missing.issubset(selection.find_missing(combined.arena, combined.extents)):
        libraries.borrowed -= {first + number for number in needed}
        return loaded
    note_borrowed(lent, needed, libraries, first, sink)
    return combined


def find_undefined(loaded: Loaded) -> set[bytes]:
    """What an executable of these cubins lacks; nothing where they are damaged."""
    job = loaded.job
    files, sections, symbols, faults = elfread.parse(loaded.arena, loaded.extents)
    if faults:
        return set()
    changes = [files[number] for number in elfread.find_changes(files)]
    newest, patch = max(((row.toolkit, row.patch) for row in changes), default=(0, 0))
    objects = Objects(
        loaded.arena,
        files,
        sections,
        symbols,
        job=job,
        names=loaded.names,
        homes=loaded.homes,
        references=loaded.references,
        release=release_to_follow(job.options.nvlink, newest, patch),
        libraries=loaded.libraries,
    ).seal()
    merged = Merged(objects)
    if resolve.resolve(merged):
        return set()
    cut = pools.cut_pools(merged)
    if cut is not objects.sections:
        merged.objects = objects.replaced(sections=cut)
    resolve.find_live(merged, select_kernels(merged), keep_all=False)
    return {os.fsencode(entity_name(merged, entity)) for entity in resolve.find_undefined(merged)}


def read_modules(
    loaded: Loaded, lenders: dict[Library, set[bytes]], timing: CsvTiming, sink: Sink
) -> LendableModules | None:
    """The modules that libraries lend, with PTX compiled; None where they have no code for this."""
    job = loaded.job
    sources = Sources()
    for library in lenders:
        data = _read(loaded, library, sink)
        sources.add(Run(data, [library.file], bytes([kinds.SHARED]), extent(0, len(data))))
        sources.size += len(data)
    contents, faults = scan(sources)
    if faults:
        report_damage(faults, sources, sink)
        return None
    files = list(lenders)
    names: list[list[bytes]] = []
    linked: dict[int, set[int]] = {}
    known: set[bytes] = set()
    for number, (library, wanted) in enumerate(lenders.items()):
        ids = module_ids(contents.ids(number))
        names.append(ids)
        if len(ids) != contents.containers(number):
            sink.report(
                "library-ids",
                file=library.file,
                ids=len(ids),
                containers=contents.containers(number),
            )
            return None
        # The first of equal ones counts.
        chosen = {identifier: at for at, identifier in enumerate(ids) if identifier in wanted}
        linked[number] = {at for identifier, at in chosen.items() if identifier not in known}
        known |= chosen.keys()
    picked, without = pick_entries(job, contents, faults, linked, sink)
    for number in picked.odd:
        pick = Pick(picked.rows, number)
        if pick.kind == kinds.PTX and job.options.compiles:
            piece = take_odd(pick, picked, sink)
            if piece is not None:
                picked.pieces[number] = piece
    compile_ptx(job, picked, timing, sink)
    if not job.options.suppress_arch_warning:
        for number in without:
            hints = [archs_hint(contents.entries, number)]
            sink.report(
                "arch-not-found", arch=job.options.arch, file=sources.names[number], hints=hints
            )
    rows, numbers = picked.cubins()
    if not numbers:
        return None
    open_libraries(picked.codecs)
    picks = [Pick(picked.rows, number) for number in numbers]
    modules = with_cubins(
        job,
        [sources.names[pick.source] for pick in picks],
        rows,
        sources.arenas,
        lambda number: picked.take(numbers[number], sink),
        sink,
    )
    return LendableModules(
        modules,
        contents,
        [names[pick.source][pick.container] for pick in picks],
        [files[pick.source] for pick in picks],
        [(pick.source, pick.container) for pick in picks],
    )


def _read(loaded: Loaded, library: Library, sink: Sink) -> bytes:
    if library.source is not None:
        return library.source.data
    loaded.job.plan.reads(library.file, sink)
    try:
        with Incoming(library.file, pipes=False) as stream:
            return stream.read(min(stream.size, MAX_SIZE))
    except (OSError, ValueError) as error:
        sink.fatal("cannot-read-file", file=library.file, reason=reason_of(error))


def find_needed(candidates: Candidates, lent: LendableModules, sink: Sink) -> list[int]:
    """Which of the lent modules the link needs, if they count as members of a last archive."""
    count, first = len(lent.ids), len(candidates.opened.sources) + 1
    combined = combine(candidates, lent, range(count), len(candidates.loaded.names), sink)
    chosen = select(combined, candidates.opened.sources, bytes([NEEDED]) * count)
    return [home - first for home in chosen.homes if home >= first]


def take(
    candidates: Candidates, lent: LendableModules, needed: Sequence[int], sink: Sink
) -> Loaded:
    """The link of what it takes of its sources, and these modules.

    They come before the device runtime, which is not linked for what they define.
    """
    names = candidates.loaded.names
    place = min(find_system(candidates.loaded.job, names), default=len(names))
    combined = combine(candidates, lent, needed, place, sink)
    return settle(combined, candidates.opened, sink, bytes([ALWAYS]) * len(lent.ids))


def combine(
    candidates: Candidates, lent: LendableModules, numbers: Sequence[int], place: int, sink: Sink
) -> Loaded:
    """Everything that was loaded, with some of the lent modules inserted before input `place`."""
    loaded, modules = candidates.loaded, lent.loaded
    rows = [row_at(0, *extent_at(loaded.extents, at)) for at in range(len(loaded.names))]
    rows[place:place] = [row_at(1, *extent_at(modules.extents, at)) for at in numbers]
    names, homes = list(loaded.names), list(loaded.homes)
    names[place:place] = [modules.names[at] for at in numbers]
    homes[place:place] = [len(candidates.opened.sources) + 1 + at for at in numbers]
    arenas = [loaded.arena, modules.arena]
    combined = with_cubins(loaded.job, names, b"".join(rows), arenas, lambda number: b"", sink)
    combined.homes = homes
    return combined


def note_borrowed(
    lent: LendableModules, borrowed: Sequence[int], libraries: Libraries, first: int, sink: Sink
) -> None:
    """Note which modules are borrowed; warn of those that the driver does not get."""
    if not libraries.optional:
        libraries.written = variable_patterns(lent.contents, range(len(lent.contents.sources)))
    with_ptx = {(row[0], row[1]) for row in ENTRY.iter_unpack(lent.contents.entries)
                if row[3] == ENTRY_PTX}  # fmt: skip
    unlisted: dict[Library, bytes] = {}
    for number in borrowed:
        identifier, library = lent.ids[number], lent.libraries[number]
        libraries.copied[first + number] = libraries.owner(identifier)
        # Its name becomes part of source code.
        is_name = identifier.isascii() and identifier.replace(b"_", b"a").isalnum()
        if is_name and any(identifier in other.wrappers for other in libraries.libraries):
            libraries.lent.append(os.fsdecode(identifier))
        elif lent.places[number] in with_ptx:
            unlisted.setdefault(library, identifier)
    for library, identifier in unlisted.items():
        sink.report("library-unlisted", file=library.file, id=os.fsdecode(identifier))
