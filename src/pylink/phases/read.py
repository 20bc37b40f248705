"""Phase read: checks all cubins and makes tables of them."""

from __future__ import annotations

from pylink._native import elfread
from pylink.facts.objectformats import EARLY_FORMAT
from pylink.facts.releases import (
    NEWEST,
    TRAIT_PARTS_ACCELERATED,
    TRAIT_TELLS_UNHOSTED,
    toolkit_name,
)
from pylink.facts.rownumbers import FileFlag
from pylink.facts.target import FAMILY_A, FAMILY_C
from pylink.phases.results import make_objects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from pylink.diagnostics import Sink
    from pylink.facts.releases import Release
    from pylink.inputs.loaded import Loaded
    from pylink.phases.init import Job
    from pylink.phases.results import Objects
    from pylink.rows import FileRow


def read(sink: Sink, loaded: Loaded) -> Objects | None:
    """Check and tabulate every cubin; None if a cubin is damaged."""
    job, names, arena = loaded.job, loaded.names, loaded.arena
    times = job.steps.times(len(names))
    files, sections, symbols, faults = elfread.parse(arena, loaded.extents, times)
    job.steps.end_step("parse", times)
    if faults:
        from pylink.phases.faults import report_fault

        report_fault(faults[0], loaded, files, sections, sink)
        return None
    # The first file, files of another toolkit, target or flags than the file before, and files of
    # which `_check_targets` may complain.
    changed = [(number, files[number]) for number in elfread.find_changes(files)]
    objects = make_objects(loaded, files, sections, symbols, [row for _, row in changed])
    release = sink.follows = objects.release
    if job.options.register_link_binaries is not None and release.traits & TRAIT_TELLS_UNHOSTED:
        for name in _inputs_without_host_code(loaded):
            sink.report("no-host-code", file=name)
    _check_targets(objects, changed, sink)
    job.steps.end_step("check_targets")
    return objects.seal()


def _inputs_without_host_code(loaded: Loaded) -> list[str]:
    """Return the names of inputs that the program registers by file name, not by module id."""
    if loaded.registered is None:  # all are cubins
        return loaded.names
    return [name for name, has_id in loaded.registered if not has_id]


def _check_targets(objects: Objects, changed: list[tuple[int, FileRow]], sink: Sink) -> None:
    """Refuse inputs that the target cannot run, and inputs of a too old or too new toolkit.

    `changed` has number and row of the first file, and at least of each file whose toolkit, target
    or flags differ from the previous file's.
    """
    job, release = objects.job, objects.release
    has_whole_program = False  # among the files so far
    for number, row in changed:
        name = objects.names[number]
        specific = bool(row.flags & FileFlag.SPECIFIC)
        if row.flags & FileFlag.NARROW and job.target.family != FAMILY_C:
            sink.report("wrong-os-abi", file=name)
        needs_suffix = (
            specific and not job.target.specific and release.traits & TRAIT_PARTS_ACCELERATED != 0
        )
        if needs_suffix or not job.target.accepts_cubin(row.sm, specific=specific):
            _refuse_target(
                job, name, row.sm, specific=specific, needs_suffix=needs_suffix, sink=sink
            )
        if row.flags & FileFlag.UNCLASSED and job.target.family != FAMILY_A:
            sink.report("isa-class-missing", file=name, arch=str(job.target.sm))
        if row.format == EARLY_FORMAT and row.toolkit < job.target.since:
            _refuse_old(name, row.toolkit, job.target.since, sink)
        if row.toolkit > release.toolkit:
            _refuse_toolkit(job, name, row.toolkit, release, sink)
        has_whole_program = has_whole_program or bool(row.flags & FileFlag.WHOLE_PROGRAM)
        if has_whole_program and row.toolkit < release.toolkit:
            from pylink.phases.whole_programs import refuse_old

            refuse_old(name, toolkit_name(row.toolkit), release, sink)


def _refuse_target(
    job: Job, name: str, sm: int, *, specific: bool, needs_suffix: bool, sink: Sink
) -> NoReturn:
    """Refuse code that the target cannot run.

    With `needs_suffix` the code has the suffix `a`, e.g. sm_90a, and the target has none: the
    release that the link follows refuses that, whether or not the target could run the code.
    """
    from pylink.diagnostics.record import note

    if job.target.lacks_mercury(sm):
        sink.report("output-limited", file=name, arch=str(job.target.sm))
    suffix = "a" if specific else ""
    hint = note("archs-differ", archs=f"sm_{sm}{suffix}", arch=job.options.arch)
    if needs_suffix:
        sink.fatal("accelerated-arch", file=name, hints=[hint])
    sink.fatal("arch-mismatch", file=name, arch=job.options.arch, hints=[hint])


def _refuse_old(name: str, toolkit: int, since: int, sink: Sink) -> NoReturn:
    """Refuse code of a toolkit before `since`, the first whose code for the target is final."""
    from pylink.diagnostics.record import note

    hint = note("made-by-toolkit", compiler=toolkit_name(toolkit), since=toolkit_name(since))
    sink.fatal("toolkit-too-old", file=name, since=toolkit_name(since), hints=[hint])


def _refuse_toolkit(job: Job, name: str, toolkit: int, release: Release, sink: Sink) -> None:
    """Refuse an input of a newer toolkit than the release that the link follows, in nvlink's words.

    Only warn if --nvlink-version chose the release, and pylink knows no release of that toolkit.
    The hint says why the link follows an older release.
    """
    from pylink.diagnostics.record import note

    toolkit_title = toolkit_name(toolkit)
    if toolkit > NEWEST.toolkit and job.options.nvlink_version:
        sink.report("unknown-toolkit", file=name, compiler=toolkit_title, release=release.name)
        return
    if toolkit > NEWEST.toolkit:
        hint = note("newest-release", compiler=toolkit_title, release=NEWEST.name)
    elif job.options.nvlink_version:
        hint = note("older-release", compiler=toolkit_title, release=release.name)
    else:
        hint = note("older-toolkit", compiler=toolkit_title, release=release.name)
    # nvlink prints the toolkit's number, which has 32 bits, as a signed one.
    number = toolkit - (toolkit >> 31 << 32)
    sink.fatal(
        "newer-toolkit", file=name, toolkit=str(number), ours=str(release.toolkit), hints=[hint]
    )
