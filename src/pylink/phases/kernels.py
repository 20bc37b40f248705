"""Part of merge from sm_100 on: rewrites code as nvlink's finalizer does, before all else.

No later step needs to know of it: the tables look as if ptxas had compiled the files so.
"""

from __future__ import annotations

from pylink._native import elfread, notes
from pylink.facts.attributes import EIATTR_NUMBER
from pylink.facts.kernelmodes import (
    MODE_BARRIERS,
    MODE_EARLY_CAPSULES,
    MODE_EARLY_CODE,
    MODE_GUARDED,
    MODE_LASTING_BARRIERS,
    MODE_NO_BARRIERS,
    UPDATE_AWAITED_FENCES,
    UPDATE_BARE_WORDS,
    UPDATE_GUARD_BSYNC,
    UPDATE_SHORT_ADDS,
    UPDATE_UNGUARD_BSYNC,
)
from pylink.facts.releases import (
    TRAIT_BARE_WORDS,
    TRAIT_EARLY_FILES,
    TRAIT_GUARDED_BSYNC,
    TRAIT_SHORT_ADDS,
    code_bounds,
    code_traits_of,
)
from pylink.facts.rownumbers import FileFlag
from pylink.facts.target import FAMILY_C
from pylink.tables import extent, section_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink._native.tables import Faults
    from pylink.diagnostics import Sink
    from pylink.facts.releases import Release
    from pylink.phases.results import Objects

# Attribute of .nv.info: kernels end with an error barrier (in every object of -G).
GEN_ERRBAR_AT_EXIT = EIATTR_NUMBER["GEN_ERRBAR_AT_EXIT"]

# SM numbers of the chips for which some IADD3 instructions become IADD (UPDATE_SHORT_ADDS).
SHORT_ADD_CHIPS = (120, 121)


def _damage_kind(section: str) -> str:
    """Return the name of the diagnostic of damage in a section that is rewritten with its code."""
    if section.startswith(".nv.capmerc"):
        return "capsule-format"
    if section.startswith((".nv.info", ".nv.merc.nv.info")):
        return "nvinfo-format"
    # All others but jump tables are debug data.
    return "debug-format" if "debug" in section else "malformed"


def rewrite_kernels(objects: Objects, sink: Sink) -> Objects:
    """Return the inputs with code rewritten for the link.

    It is `objects` itself if no code changes, and if some of it cannot be rewritten, which is
    reported as an error.
    """
    # Files from before 13.0 are converted first: only their capsules (functions in mercury form) if
    # the link follows a release before 13.0, else only their code.
    early_mode = MODE_EARLY_CAPSULES if objects.traits & TRAIT_EARLY_FILES else MODE_EARLY_CODE
    # Each step has the number of a file, and the mode in which its code is changed.
    steps = [(number, early_mode) for number in elfread.find_flagged(objects.files, FileFlag.EARLY)]
    steps += _outdated_files(objects)
    mode = _barrier_mode(objects)
    if mode is not None:
        numbers = elfread.find_kernels(objects, every=mode != MODE_NO_BARRIERS)
        steps += [(number, mode) for number in numbers]
    untimed = objects.job.target.untimed
    if untimed:
        # Code for the chips `untimed` relies on fixed latencies that the target does not have, so
        # its instructions are made to wait: last, since earlier steps insert and remove some.
        chips = enumerate(objects.files.column("sm"))
        steps += [(number, MODE_GUARDED) for number, sm in chips if sm in untimed]
    if not steps:
        return objects

    from pylink._native.exits import rewrite_exits

    arena, sections, symbols, faults, slowed = rewrite_exits(objects, steps)
    for number, section, offset, reason in faults:
        if not reason:
            sink.report(
                "whole-program-moves",
                file=objects.names[number],
                section=section_name(objects, section),
                offset=offset,
            )
            continue
        name = section_name(objects, section)
        sink.report(
            _damage_kind(name),
            file=objects.names[number],
            section=name,
            offset=offset,
            reason=reason,
        )
    for number, count in slowed:
        sink.report(
            "untimed-code",
            file=objects.names[number],
            sm=objects.files[number].sm,
            arch=objects.job.target.name,
            count=count,
        )
    if faults or arena is objects.arena:
        return objects
    rewritten = objects.replace(arena=arena, sections=sections, symbols=symbols)
    # References to places after a shortened function, or in removed padding, are invalid now.
    broken = elfread.check_again(rewritten, [number for number, _ in steps])
    if broken:
        _report_broken(rewritten, broken, sink)
    return rewritten


def _outdated_files(objects: Objects) -> list[tuple[int, int]]:
    """Return number and mode of each file whose code must be converted; only for sm_100 and later.

    Such a file's compiler makes other code than the release which the link follows. The mode has
    UPDATE_ bits for what must be converted.
    """
    release = objects.release
    first_tool, end_tool = code_bounds(release)
    if objects.job.target.family != FAMILY_C:
        return []
    files = objects.files
    file_modes = (
        (
            number,
            _update_mode(
                release, files[number].toolkit, files[number].patch, objects.job.target.sm
            ),
        )
        for number in elfread.find_files_outside(files, first_tool, end_tool)
    )
    return [(number, mode) for number, mode in file_modes if mode]


def _update_mode(release: Release, toolkit: int, patch: int, sm: int) -> int:
    """Return the mode bits that convert code of a tool to code of a release; 0 to change nothing.

    `toolkit` and `patch` are the version of the tool, and `sm` is the target of the link.
    Without a known patch level, every conversion that may be needed is done.
    """
    code_traits = code_traits_of(toolkit, patch)
    mode = 0
    if release.traits & TRAIT_GUARDED_BSYNC & ~code_traits:
        mode |= UPDATE_GUARD_BSYNC
    elif code_traits & TRAIT_GUARDED_BSYNC & ~release.traits:
        mode |= UPDATE_UNGUARD_BSYNC
    if release.traits & TRAIT_SHORT_ADDS & ~code_traits:
        mode |= UPDATE_AWAITED_FENCES | (UPDATE_SHORT_ADDS if sm in SHORT_ADD_CHIPS else 0)
    if release.traits & TRAIT_BARE_WORDS & ~code_traits:
        mode |= UPDATE_BARE_WORDS
    return mode


def _barrier_mode(objects: Objects) -> int | None:
    """Return the MODE_ number that says how kernels end; None if their ends stay as they are."""
    job = objects.job
    has_barriers = notes.has_attribute(objects, GEN_ERRBAR_AT_EXIT)
    if job.debug:
        return MODE_LASTING_BARRIERS
    if not job.executable:
        return MODE_LASTING_BARRIERS if has_barriers else None
    return MODE_BARRIERS if has_barriers else MODE_NO_BARRIERS


def _report_broken(objects: Objects, faults: Faults, sink: Sink) -> None:
    """Report the first of `faults`, in files that are not valid after their code was rewritten."""
    from pylink.inputs.loaded import Loaded
    from pylink.phases.faults import report_fault

    extents = b"".join(extent(row.offset, row.size) for row in objects.files)
    loaded = Loaded(objects.job, objects.names, objects.arena, extents)
    report_fault(faults[0], loaded, objects.files, objects.sections, sink)
