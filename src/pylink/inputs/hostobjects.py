"""Picks the entries of host objects and fat binaries that are linked for the target."""

from __future__ import annotations

from pylink._native import elfread, fatbin
from pylink.facts.fatbinentries import pack_entry, recorded_options, suffix_of
from pylink.facts.inputkinds import CUBIN, LTOIR
from pylink.facts.picknumbers import EntryKind, PickOrigin, PickState
from pylink.facts.releases import TRAIT_PARTS_ACCELERATED, release_to_follow
from pylink.inputs.choice import Chooser
from pylink.inputs.compileinputs import CompileInput
from pylink.inputs.contents import DeviceContents
from pylink.inputs.damage import report_damage, report_entry
from pylink.inputs.kinds import SYSTEM_LIBRARY
from pylink.inputs.payload import Unpacker
from pylink.inputs.picks import Pick, Picks
from pylink.inputs.sources import WHOLE_ARCHIVE
from pylink.rowformats import ENTRY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Diagnostic, Sink
    from pylink.facts.target import Target
    from pylink.inputs.loaded import ScannedInputs
    from pylink.inputs.sources import Sources
    from pylink.phases.init import Job

NO_LIMIT = (1 << 64) - 1

# Prefixes in `code=` of nvcc, by kind of entry.
CODE_PREFIXES = {EntryKind.ELF: "sm_", EntryKind.PTX: "compute_", EntryKind.LTOIR: "lto_"}


def unpack_hosted(job: Job, scanned: ScannedInputs, sink: Sink) -> tuple[DeviceContents, Picks]:
    """Return the device code in the sources, and the entries that the link takes.

    Damaged sources are reported. A source gets a warning if one of its containers (fat binaries)
    has no code for the target. As in nvlink, members of archives (except with --whole-archive) and
    the device runtime get none, since most links need little of these.
    """
    sources, libraries, contents = scanned.sources, scanned.libraries, scanned.contents
    if scanned.faults:
        report_damage(scanned.faults, sources, sink)
    linked = libraries.choose_containers(job, sources, contents, sink) if libraries else {}
    picked, unmatched = pick_entries(job, contents, scanned.faults, linked, sink)
    for number in picked.special:
        pick = Pick(picked.rows, number)
        if pick.embedded != PickOrigin.FILE:
            compile_input = make_compile_input(pick, picked, sink)
            if compile_input is not None:
                picked.compile_inputs[number] = compile_input
    if not job.options.suppress_arch_warning:
        for number in unmatched:
            name = sources.names[number]
            is_optional = sources.group(number) or SYSTEM_LIBRARY in name
            if sources.marks[number] & WHOLE_ARCHIVE or not is_optional:
                hints = [archs_hint(contents.entries, number)]
                sink.report("arch-not-found", arch=job.options.arch, file=name, hints=hints)
    return contents, picked


def scan(sources: Sources) -> tuple[DeviceContents, bytes]:
    """Find the device code in the sources; also return a FaultRow for each damaged source."""
    arena_numbers, extents = bytes(sources.arena_numbers), bytes(sources.extents)
    kinds = bytes(sources.kinds)
    entries, rows, faults = fatbin.find_entries(sources.arenas, arena_numbers, extents, kinds)
    return DeviceContents(sources, entries, rows), faults


def pick_entries(
    job: Job, contents: DeviceContents, faults: bytes, linked: dict[int, set[int]], sink: Sink
) -> tuple[Picks, list[int]]:
    """Pick the entries that a link takes, at most one from each container (fat binary).

    Also return the undamaged sources that have a container without code for the target. If `linked`
    has a source, only its containers with the numbers there are considered.
    """
    sources = contents.sources
    unpacker = Unpacker(job.options.max_uncompressed_size, sources.size, sink)

    def pick(chooser: Chooser) -> tuple[Picks, list[int]]:
        """Pick the entries that `chooser` ranks highest."""
        picked = _pick(contents, faults, chooser, unpacker.limit, linked)
        rows, source_numbers, special, unmatched, bare, codecs = picked
        return Picks(
            sources,
            rows,
            source_numbers,
            special=special,
            bare=bare,
            codecs=codecs,
            unpacker=unpacker,
        ), unmatched

    requested = job.options.follows
    parts_accelerated = requested is not None and bool(
        release_to_follow(requested, 0).traits & TRAIT_PARTS_ACCELERATED
    )
    chooser = Chooser(job.target, optimizes=job.optimizes, parts_accelerated=parts_accelerated)
    picked, unmatched = pick(chooser)
    if requested is None and chooser.met_accelerated and _follows_parting_release(picked):
        return pick(Chooser(job.target, optimizes=job.optimizes, parts_accelerated=True))
    return picked, unmatched


def _pick(
    contents: DeviceContents,
    faults: bytes,
    chooser: Chooser,
    limit: int,
    linked: dict[int, set[int]],
) -> fatbin.Picked:
    """Call `fatbin.pick_entries`, which describes the result."""
    sources = contents.sources
    return fatbin.pick_entries(
        (contents.entries, contents.rows, faults),
        (bytes(sources.arena_numbers), bytes(sources.extents), bytes(sources.kinds)),
        chooser.rank,
        limit,
        linked,
    )


def pick_rows(contents: ScannedInputs, target: Target, *, optimizes: bool) -> bytes:
    """Return the PickRows that links for a target take, not considering other options."""
    chooser = Chooser(target, optimizes=optimizes)
    return _pick(contents.contents, contents.faults, chooser, NO_LIMIT, {})[0]


def _follows_parting_release(picked: Picks) -> bool:
    """Return whether a picked cubin is of a release that parts accelerated code from other code.

    Such a release, from 13.1 on, links code with the suffix `a` only for targets with this suffix.
    The question matters only if the target lacks the suffix, and an entry for its chip has it.
    """
    for number in range(len(picked.source_numbers)):
        pick = Pick(picked.rows, number)
        if pick.kind != CUBIN or pick.state != PickState.GOOD:
            continue
        toolkit = _read_toolkit(picked.peek(pick))
        if release_to_follow(None, toolkit).traits & TRAIT_PARTS_ACCELERATED:
            return True
    return False


def _read_toolkit(cubin: bytes) -> int:
    """Return the toolkit that compiled a cubin, 131 for 13.1; 0 if it is damaged or names none."""
    files, _, _, faults = elfread.parse(cubin, bytes(8) + len(cubin).to_bytes(8, "little"))
    return 0 if faults else files[0].toolkit


def archs_hint(entries: bytes, number: int) -> Diagnostic:
    """Return a note with the architectures that a source has code for, as in nvcc's `code=`."""
    from pylink.diagnostics.record import note

    names: dict[str, None] = {}
    for source, _, _, kind, sm, _, flags, *_ in ENTRY.iter_unpack(entries):
        if source == number and kind in CODE_PREFIXES:
            names[code_name(kind, sm, flags)] = None
    return note("archs-there", archs=", ".join(names) or "nothing")


def code_name(kind: int, sm: int, flags: int) -> str:
    """Return the architecture of an entry as in nvcc's `code=`: sm_90a, compute_90."""
    return f"{CODE_PREFIXES.get(kind, '')}{sm}{suffix_of(flags)}"


def make_compile_input(pick: Pick, picked: Picks, sink: Sink) -> CompileInput | None:
    """Make the input of a compiler from an entry; None, with a report, if it is damaged."""
    source = picked.sources[pick.source]
    if pick.state != PickState.GOOD:
        reason = picked.unpacker.refusal(pick.full_size, is_large=pick.state == PickState.TOO_LARGE)
        report_entry(source, pick.index, str(reason), sink, reason.kind)
        return None
    view = memoryview(source.arena)
    compile_input = CompileInput(
        source.name,
        pick.kind,
        b"",
        arch=pick.sm,
        embedded=True,
        hosted=pick.embedded == PickOrigin.HOST,
        number=pick.source,
    )
    if pick.kind == LTOIR:
        # nvJitLink decompresses it
        compile_input.data = pack_entry(view[pick.header : pick.offset + pick.room])
    else:
        compile_input.data = picked.unpack(pick, sink)
        compile_input.options = recorded_options(view[pick.header : pick.offset])
    return compile_input
