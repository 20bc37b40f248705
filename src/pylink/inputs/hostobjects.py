"""Host objects and fat binaries: the entries that are linked for the target."""

from __future__ import annotations

from pylink._native import elfread, fatbin
from pylink.facts.fatbinentries import entry_text, pack_entry
from pylink.facts.releases import TRAIT_PARTS_ACCELERATED, release_to_follow
from pylink.inputs.choice import CHIP, ENTRY_ELF, ENTRY_LTOIR, ENTRY_PTX, FAMILY, Chooser
from pylink.inputs.contents import DeviceContents
from pylink.inputs.damage import report_damage, report_entry
from pylink.inputs.kinds import CUBIN, LTOIR, SYSTEM_LIBRARY
from pylink.inputs.payload import Unpacker
from pylink.inputs.picks import FILE, GOOD, HOSTED, TOO_LARGE, Pick, Picks
from pylink.inputs.pieces import Piece
from pylink.inputs.sources import WHOLE
from pylink.rowformats import ENTRY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Diagnostic, Sink
    from pylink.facts.target import Target
    from pylink.inputs.loaded import Contents
    from pylink.inputs.sources import Sources
    from pylink.phases.init import Job

NO_LIMIT = (1 << 64) - 1

# What `code=` of nvcc calls each kind of entry.
CODE_WORDS = {ENTRY_ELF: "sm_", ENTRY_PTX: "compute_", ENTRY_LTOIR: "lto_"}


def unpack_hosted(job: Job, opened: Contents, sink: Sink) -> tuple[DeviceContents, Picks]:
    """What is in the sources, and what the link takes of that.

    A container without code for the target is warned of, a damaged one reported. Like nvlink, the
    warning ignores members of archives, unless all of them are asked for, and the device
    runtime library: most links need little of them.
    """
    sources, libraries, contents = opened.sources, opened.libraries, opened.contents
    if opened.faults:
        report_damage(opened.faults, sources, sink)
    linked = libraries.choose(job, sources, contents, sink) if libraries else {}
    picked, missing = pick_entries(job, contents, opened.faults, linked, sink)
    for number in picked.odd:
        pick = Pick(picked.rows, number)
        if pick.embedded != FILE:
            piece = take_odd(pick, picked, sink)
            if piece is not None:
                picked.pieces[number] = piece
    if not job.options.suppress_arch_warning:
        for number in missing:
            name = sources.names[number]
            is_little = sources.group(number) or SYSTEM_LIBRARY in name
            if sources.marks[number] & WHOLE or not is_little:
                hints = [archs_hint(contents.entries, number)]
                sink.report("arch-not-found", arch=job.options.arch, file=name, hints=hints)
    return contents, picked


def scan(sources: Sources) -> tuple[DeviceContents, bytes]:
    """What is in the sources, and a FaultRow for each that is damaged."""
    homes, extents, kinds = bytes(sources.homes), bytes(sources.extents), bytes(sources.kinds)
    entries, rows, faults = fatbin.find_entries(sources.arenas, homes, extents, kinds)
    return DeviceContents(sources, entries, rows), faults


def pick_entries(
    job: Job, contents: DeviceContents, faults: bytes, linked: dict[int, set[int]], sink: Sink
) -> tuple[Picks, list[int]]:
    """What the link takes, and the sources with containers of which it takes nothing.

    It takes only these containers of a source that is in `linked`.
    """
    sources = contents.sources
    unpacker = Unpacker(job.options.max_uncompressed_size, sources.size, sink)

    def pick(chooser: Chooser) -> tuple[Picks, list[int]]:
        picked = _pick(contents, faults, chooser, unpacker.limit, linked)
        rows, homes, odd, missing, bare, codecs = picked
        return Picks(
            sources, rows, homes, odd=odd, bare=bare, codecs=codecs, unpacker=unpacker
        ), missing

    asked = job.options.follows
    parts = asked is not None and bool(release_to_follow(asked, 0).traits & TRAIT_PARTS_ACCELERATED)
    chooser = Chooser(job.target, optimizes=job.optimizes, parts=parts)
    picked, missing = pick(chooser)
    if asked is None and chooser.depends and picks_parting(picked):
        return pick(Chooser(job.target, optimizes=job.optimizes, parts=True))
    return picked, missing


def _pick(
    contents: DeviceContents,
    faults: bytes,
    chooser: Chooser,
    limit: int,
    linked: dict[int, set[int]],
) -> tuple[bytes, list[int], list[int], list[int], list[int], int]:
    """What native code picks, see `fatbin.pick_entries`."""
    sources = contents.sources
    return fatbin.pick_entries(
        (contents.entries, contents.rows, faults),
        (bytes(sources.homes), bytes(sources.extents), bytes(sources.kinds)),
        chooser.rank,
        limit,
        linked,
    )


def pick_rows(contents: Contents, target: Target, *, optimizes: bool) -> bytes:
    """The PickRows of what links for a target take, except for their options."""
    chooser = Chooser(target, optimizes=optimizes)
    return _pick(contents.contents, contents.faults, chooser, NO_LIMIT, {})[0]


def picks_parting(picked: Picks) -> bool:
    """Whether a cubin that was picked makes the link follow a release that parts accelerated code.

    Only links that hold code for their very chip, but are for what runs everywhere, come here.
    """
    for number in range(len(picked.homes)):
        pick = Pick(picked.rows, number)
        if pick.kind != CUBIN or pick.state != GOOD:
            continue
        toolkit = read_toolkit(picked.peek(pick))
        if release_to_follow(None, toolkit).traits & TRAIT_PARTS_ACCELERATED:
            return True
    return False


def read_toolkit(cubin: bytes) -> int:
    """The toolkit that made a cubin, 131 for 13.1; 0 of one that is damaged or does not say."""
    files, _, _, faults = elfread.parse(cubin, bytes(8) + len(cubin).to_bytes(8, "little"))
    return 0 if faults else files[0].toolkit


def archs_hint(entries: bytes, number: int) -> Diagnostic:
    """What a source has code for, in words of -gencode."""
    from pylink.diagnostics.record import note

    names: dict[str, None] = {}
    for entry in ENTRY.iter_unpack(entries):
        if entry[0] == number and entry[3] in CODE_WORDS:
            names[entry_word(entry[3], entry[4], entry[6])] = None
    return note("archs-there", archs=", ".join(names) or "nothing")


def entry_word(kind: int, sm: int, flags: int) -> str:
    """What an entry is for, in a word of -gencode."""
    suffix = "a" if flags & CHIP else "f" if flags & FAMILY else ""
    return f"{CODE_WORDS.get(kind, '')}{sm}{suffix}"


def take_odd(pick: Pick, picked: Picks, sink: Sink) -> Piece | None:
    """The piece of an entry that is compiled before it is linked; what is refused is reported."""
    source = picked.sources[pick.source]
    if pick.state != GOOD:
        reason = picked.unpacker.refusal(pick.full_size, is_large=pick.state == TOO_LARGE)
        report_entry(source, pick.index, str(reason), sink, reason.kind)
        return None
    view = memoryview(source.arena)
    piece = Piece(
        source.name,
        pick.kind,
        b"",
        arch=pick.sm,
        embedded=True,
        hosted=pick.embedded == HOSTED,
        number=pick.source,
    )
    if pick.kind == LTOIR:
        # nvJitLink decompresses it
        piece.data = pack_entry(view[pick.header : pick.offset + pick.room])
    else:
        piece.data = picked.unpack(pick, sink)
        piece.options = entry_text(view[pick.header : pick.offset])
    return piece
