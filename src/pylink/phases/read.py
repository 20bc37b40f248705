"""Phase read: checked tables of all cubins."""

from __future__ import annotations

from pylink._native import elfread
from pylink.facts.objectformats import VERSIONED
from pylink.facts.releases import (
    NEWEST,
    TRAIT_PARTS_ACCELERATED,
    TRAIT_TELLS_UNHOSTED,
    release_to_follow,
)
from pylink.facts.target import FAMILY_A, FAMILY_C
from pylink.phases.results import Objects
from pylink.tables import NARROW, SPECIFIC, UNCLASSED, WHOLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from pylink.diagnostics import Sink
    from pylink.facts.releases import Release
    from pylink.inputs.loaded import Loaded
    from pylink.phases.init import Job
    from pylink.rows import FileRow


def read(sink: Sink, loaded: Loaded) -> Objects | None:
    """Check and tabulate every cubin; after errors the result is None."""
    job, names, arena = loaded.job, loaded.names, loaded.arena
    times = job.steps.times(len(names))
    files, sections, symbols, faults = elfread.parse(arena, loaded.extents, times)
    job.steps.done("parse", times)
    if faults:
        from pylink.phases.faults import report_fault

        report_fault(faults[0], loaded, files, sections, sink)
        return None
    changed = [(number, files[number]) for number in elfread.find_changes(files)]
    newest, patch = max(((row.toolkit, row.patch) for _, row in changed), default=(0, 0))
    release = sink.follows = release_to_follow(job.options.nvlink, newest, patch)
    objects = Objects(
        arena,
        files,
        sections,
        symbols,
        job=job,
        names=names,
        homes=loaded.homes,
        references=loaded.references,
        release=release,
        libraries=loaded.libraries,
    )
    if job.options.register_link_binaries is not None and release.traits & TRAIT_TELLS_UNHOSTED:
        for name in _unhosted(loaded):
            sink.report("no-host-code", file=name)
    _check_targets(objects, changed, sink)
    job.steps.done("check_targets")
    return objects.seal()


def _unhosted(loaded: Loaded) -> list[str]:
    """The inputs that the host program registers under their own names."""
    if loaded.registered is None:  # all are cubins
        return loaded.names
    return [name for name, has_id in loaded.registered if not has_id]


def _check_targets(objects: Objects, changed: list[tuple[int, FileRow]], sink: Sink) -> None:
    """Refuse inputs that the target cannot run, and those of a toolkit too old or too new.

    `changed` has number and row of each file whose properties differ from the previous file's.
    """
    job, release = objects.job, objects.release
    whole = False
    for number, row in changed:
        name = objects.names[number]
        specific = bool(row.flags & SPECIFIC)
        if row.flags & NARROW and job.target.family != FAMILY_C:
            sink.report("wrong-os-abi", file=name)
        apart = (
            specific and not job.target.specific and release.traits & TRAIT_PARTS_ACCELERATED != 0
        )
        if apart or not job.target.accepts_cubin(row.sm, specific):
            _refuse_target(job, name, row.sm, specific, apart, sink)
        if row.flags & UNCLASSED and job.target.family != FAMILY_A:
            sink.report("isa-class-missing", file=name, arch=str(job.target.sm))
        if row.format == VERSIONED and row.toolkit < job.target.since:
            _refuse_old(name, row.toolkit, job.target.since, sink)
        if row.toolkit > release.toolkit:
            _refuse_toolkit(job, name, row.toolkit, release, sink)
        whole = whole or bool(row.flags & WHOLE)
        if whole and row.toolkit < release.toolkit:
            from pylink.phases.whole import refuse_old

            refuse_old(name, toolkit_name(row.toolkit), release, sink)


def _refuse_target(
    job: Job, name: str, sm: int, specific: bool, apart: bool, sink: Sink
) -> NoReturn:
    """Refuse code that the target does not run or, `apart`, that the release keeps from it."""
    from pylink.diagnostics.record import note

    if job.target.limits(sm):
        sink.report("output-limited", file=name, arch=str(job.target.sm))
    suffix = "a" if specific else ""
    hint = note("archs-differ", archs=f"sm_{sm}{suffix}", arch=job.options.arch)
    if apart:
        sink.fatal("accelerated-arch", file=name, hints=[hint])
    sink.fatal("arch-mismatch", file=name, arch=job.options.arch, hints=[hint])


def _refuse_old(name: str, toolkit: int, since: int, sink: Sink) -> NoReturn:
    """Refuse code from before its architecture had the conventions that all later code has."""
    from pylink.diagnostics.record import note

    hint = note("made-by-toolkit", compiler=toolkit_name(toolkit), since=toolkit_name(since))
    sink.fatal("toolkit-too-old", file=name, since=toolkit_name(since), hints=[hint])


def _refuse_toolkit(job: Job, name: str, toolkit: int, release: Release, sink: Sink) -> None:
    """Refuse what nvlink refuses, in its words; warn of a release that nobody knows yet.

    Without --nvlink-version such a release is newer than the one followed, or than the toolkit.
    """
    from pylink.diagnostics.record import note

    maker = toolkit_name(toolkit)
    if toolkit > NEWEST.toolkit and job.options.nvlink_version:
        sink.report("unknown-toolkit", file=name, compiler=maker, release=release.name)
        return
    if toolkit > NEWEST.toolkit:
        hint = note("newest-release", compiler=maker, release=NEWEST.name)
    elif job.options.nvlink_version:
        hint = note("older-release", compiler=maker, release=release.name)
    else:
        hint = note("older-toolkit", compiler=maker, release=release.name)
    # A number of 32 bits, which nvlink takes for one with a sign.
    number = toolkit - (toolkit >> 31 << 32)
    sink.fatal(
        "newer-toolkit", file=name, toolkit=str(number), ours=str(release.toolkit), hints=[hint]
    )


def toolkit_name(toolkit: int) -> str:
    """What people call a toolkit: 129 is 12.9."""
    return f"{toolkit // 10}.{toolkit % 10}"
