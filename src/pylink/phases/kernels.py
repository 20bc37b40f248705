"""Part of merge from sm_100 on: code that the finalizer changes, changed before all else.

Nothing after this needs to know: the tables are as if ptxas had made the files so.
"""

from __future__ import annotations

from pylink._native import elfread, notes
from pylink.facts import sectionkinds
from pylink.facts.attributes import NUMBER
from pylink.facts.releases import TRAIT_EARLY_FILES
from pylink.tables import EARLY, extent, section_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink._native.tables import Faults
    from pylink.diagnostics import Sink
    from pylink.phases.results import Objects

# Attribute of .nv.info: kernels end with an error barrier (every -G object has it).
GEN_ERRBAR_AT_EXIT = NUMBER["GEN_ERRBAR_AT_EXIT"]

# Modes of pylink._native.exits.rewrite_exits.
NO_BARRIERS = 0
BARRIERS = 1
LASTING_BARRIERS = 2
EARLY_CODE = 3
EARLY_CAPSULES = 4


def rewrite_kernels(objects: Objects, sink: Sink) -> Objects:
    """The inputs with rewritten kernels; `objects` itself when there is nothing to do."""
    # What the finalizer makes of old code counts as its input. That of 12.9 leaves code as it is.
    early = EARLY_CAPSULES if objects.traits & TRAIT_EARLY_FILES else EARLY_CODE
    steps = [(number, early) for number in elfread.find_saying(objects.files, EARLY)]
    mode = _mode(objects)
    if mode is not None:
        numbers = elfread.find_kernels(objects, mode != NO_BARRIERS)
        steps += [(number, mode) for number in numbers]
    if not steps:
        return objects

    from pylink._native.exits import rewrite_exits  # noqa: PLC0415 -- rare

    arena, sections, symbols, faults = rewrite_exits(objects, steps)
    for number, section, offset, reason in faults:
        sink.report(
            "capsule-format",
            file=objects.names[number],
            section=section_name(objects, section),
            offset=offset,
            reason=reason,
        )
    if faults or arena is objects.arena:
        return objects
    rewritten = objects.replaced(arena=arena, sections=sections, symbols=symbols)
    # What pointed behind the code, or into padding that is gone, points to nothing now.
    broken = elfread.check_again(rewritten, [number for number, _ in steps])
    if broken:
        _report_broken(rewritten, broken, sink)
    return rewritten


def _mode(objects: Objects) -> int | None:
    """What the link asks for; None for a link that leaves its kernels alone."""
    job = objects.job
    barriers = notes.has_attribute(objects, sectionkinds.INFO, GEN_ERRBAR_AT_EXIT)
    if job.debug:
        return LASTING_BARRIERS
    if not job.executable:
        return LASTING_BARRIERS if barriers else None
    return BARRIERS if barriers else NO_BARRIERS


def _report_broken(objects: Objects, faults: Faults, sink: Sink) -> None:
    from pylink.phases.faults import report_fault  # noqa: PLC0415 -- an error

    extents = b"".join(extent(row.offset, row.size) for row in objects.files)
    report_fault(
        faults[0],
        objects.arena,
        objects.files,
        objects.sections,
        extents,
        objects.names,
        objects.job,
        sink,
    )
