"""Part of merge from sm_100 on: code that the finalizer changes, changed before all else.

Nothing after this needs to know: a rewritten file looks as if ptxas had made it so.
"""

from __future__ import annotations

from pylink._native import elfread, inputfiles, notes
from pylink.facts import sectionkinds
from pylink.tables import EARLY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.phases.read import Objects

# Attribute of .nv.info: kernels end with an error barrier (every -G object has it).
GEN_ERRBAR_AT_EXIT = 0x53

# Modes of pylink._native.exits.rewrite_exits.
NO_BARRIERS = 0
BARRIERS = 1
LASTING_BARRIERS = 2
EARLY_CODE = 3


def rewrite_kernels(objects: Objects, sink: Sink) -> Objects:
    """The inputs with rewritten kernels; `objects` itself when there is nothing to do."""
    # What the finalizer makes of old code counts as its input.
    steps = [(number, EARLY_CODE) for number in elfread.find_saying(objects.files, EARLY)]
    mode = _mode(objects)
    if mode is not None:
        numbers = elfread.find_kernels(objects, mode != NO_BARRIERS)
        steps += [(number, mode) for number in numbers]
    if not steps:
        return objects

    from pylink._native.exits import MalformedKernel, rewrite_exits  # noqa: PLC0415 -- rare

    images = [_image(objects, number) for number in range(len(objects.names))]
    changed = False
    for number, step in steps:
        try:
            rewritten = rewrite_exits(images[number], step)
        except MalformedKernel as fault:
            sink.report(
                "capsule-format",
                file=objects.names[number],
                section=fault.section,
                offset=fault.offset,
                reason=fault.reason,
            )
            continue
        changed = changed or rewritten is not images[number]
        images[number] = rewritten
    return _reread(objects, images) if changed and not sink.errors else objects


def _mode(objects: Objects) -> int | None:
    """What the link asks for; None for a link that leaves its kernels alone."""
    job = objects.job
    barriers = notes.has_attribute(objects, sectionkinds.INFO, GEN_ERRBAR_AT_EXIT)
    if job.debug:
        return LASTING_BARRIERS
    if not job.executable:
        return LASTING_BARRIERS if barriers else None
    return BARRIERS if barriers else NO_BARRIERS


def _image(objects: Objects, number: int) -> bytes:
    row = objects.files[number]
    return objects.arena[row.offset : row.offset + row.size]


def _reread(objects: Objects, images: list[bytes]) -> Objects:
    paths: list[bytes | None] = [None] * len(images)
    arena, extents, _, _ = inputfiles.read_files(paths, [len(image) for image in images], [*images])
    files, sections, symbols, faults = elfread.parse(arena, extents)
    if faults:
        raise ValueError("a rewritten kernel does not read back")
    return objects.replaced(arena=arena, files=files, sections=sections, symbols=symbols)
