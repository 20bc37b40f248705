"""A profile as a report that Nsight Compute opens: an action for each phase and comparison.

Names of metrics are `unit__quantity.rollup`: `link` is a whole phase, `file` reading, `sym`, `sect`
and `reloc` the tables, `dedup` comparing, `elf` the output, `py` the interpreter. The words in them
give the units that `ncu` shows. Instances are by input file, section family, relocation type, step
or pair. docs/profile.md lists all of them.
"""

from __future__ import annotations

import gc
import os
import shlex
import sys
from collections.abc import Iterable
from threading import get_native_id
from typing import TYPE_CHECKING

from pylink import __version__
from pylink.dedup.saving import saved_bytes
from pylink.files.workdir import working_directory
from pylink.profile.metrics import (
    add_advice,
    add_composition,
    add_cost,
    add_dedup,
    add_files,
    add_output,
    add_pair,
    add_relocations,
    add_sections,
    add_share,
    add_totals,
)
from pylink.profile.phase import Cost
from pylink.profile.sites import add_source_counters
from pylink.report.display import TIME, add_display_metrics
from pylink.report.model import (
    DEFAULT_DOMAIN,
    Action,
    ExecutableSettings,
    NvtxState,
    Platform,
    Process,
    ProfilerSettings,
    Report,
    Scope,
    Session,
    SystemInfo,
    VersionInfo,
)

if TYPE_CHECKING:
    from pylink.mercury.folding import FoldResult
    from pylink.profile.model import Profile
    from pylink.profile.phase import Phase
    from pylink.profile.results import Results

DOMAIN = "pylink"
LINK = "link"
DEDUP = "dedup"

# Streams stand for what runs beside each other, or is looked at apart.
MAIN_STREAM, DEDUP_STREAM = 1, 2

# Pairs with an action of their own: each contains all sections, and more cannot be looked through.
MOST_PAIRS = 64


class _Maker:
    """Makes the actions of one report, in time order."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.thread = get_native_id()
        self.readers = 1 + max((file.lane for file in profile.files), default=0)
        self.report = Report(Process(os.getpid(), os.uname().nodename, "pylink"), _session(profile))

    def action(
        self, name: str, detail: str, items: int, stack: Iterable[str], stream: int = MAIN_STREAM
    ) -> Action:
        """Enter an action of `items` items that ran below the ranges `stack`."""
        profile = self.profile
        made = Action(name, f"{name}({detail})", name, thread_id=self.thread)
        made.kernel_id = made.api_call_id = len(self.report.actions)
        made.creation_time = int(profile.created)
        made.context_id, made.context_name = 0, profile.arch
        made.stream_id, made.stream_name = stream, LINK if stream == MAIN_STREAM else DEDUP
        made.program_handle = 1
        workers = self.readers if name == "read" else 1
        state = made.nvtx = NvtxState()
        for domain in (DOMAIN, DEFAULT_DOMAIN):
            state.push(self.thread, [LINK, *stack], domain)
            if workers > 1:
                state.start("helper", domain)
        add_display_metrics(made, profile.sm, profile.arch, items, workers)
        made.set("link__target_arch", profile.arch)
        self.report.actions.append(made)
        return made


def link_report(profile: Profile, results: Results | None = None) -> Report:
    """The report of a link; with `results`, relocations are counted at their instructions, too."""
    if results is not None and profile.folding is not None and profile.saved_bytes is None:
        profile.saved_bytes = saved_bytes(results.objects) if results.merged.stand_ins else 0
    maker = _Maker(profile)
    for phase in profile.phases:
        action = maker.action(phase.tag, _detail(phase, profile), _items(phase), [phase.tag])
        add_cost(action, phase, profile)
        _add_counts(action, phase, profile)
        add_advice(action, phase, profile, results)
        if phase.tag == "merge" and profile.folding is not None:
            _add_dedup_actions(maker, profile.folding)
        if phase.tag == "relocate" and results is not None:
            add_source_counters(maker.report, action, results)
        if phase.tag == "write" and results is not None:
            add_composition(action, profile, results)
    whole = maker.action(LINK, profile.output or "", len(profile.names), [])
    whole.scope = Scope.RANGE
    add_totals(whole, profile, results)
    _add_interpreter(whole)
    for action in maker.report.actions:
        action.set(TIME, action.metrics["link__time_duration.sum"].value)
    return maker.report


def _detail(phase: Phase, profile: Profile) -> str:
    return profile.output or "" if phase.tag == "write" else f"{phase.size} {phase.unit}"


def _items(phase: Phase) -> int:
    """What the phase handles, for the grid that tools show."""
    return max(phase.sections, 1)


def _add_counts(action: Action, phase: Phase, profile: Profile) -> None:
    if phase.tag == "read":
        add_files(action, profile)
    if phase.tag in ("merge", "layout"):
        add_sections(action, profile)
    if phase.tag == "merge" and profile.folding is not None:
        add_dedup(action, profile.folding, profile.saved_bytes)
    if phase.tag == "relocate":
        add_relocations(action, profile)
    if phase.tag in ("finalize", "write"):
        add_output(action, phase)


def _add_dedup_actions(maker: _Maker, folding: FoldResult) -> None:
    """One action for all comparisons, and one for each pair where these are not too many."""
    profile, pairs = maker.profile, folding.compared
    stack = ["merge", "fold_mercury"]
    every = maker.action(DEDUP, f"{len(pairs)} pairs", len(pairs), stack, DEDUP_STREAM)
    add_dedup(every, folding, profile.saved_bytes)
    duration = sum(folding.stats.stage_ns)
    every.set("link__time_duration.sum", duration)
    add_share(every, Cost(wall_ns=duration, cpu_ns=duration), profile)
    for pair in pairs if len(pairs) <= MOST_PAIRS else ():
        names = f"{pair.candidate.name}, {pair.reference.name}"
        add_pair(maker.action(DEDUP, names, 1, stack, DEDUP_STREAM), pair, profile)


def _add_interpreter(whole: Action) -> None:
    """What the interpreter did since it started."""
    whole.set("py__gc_runs.sum", sum(generation["collections"] for generation in gc.get_stats()))
    whole.set("py__alloc_blocks_live.sum", sys.getallocatedblocks())


def _session(profile: Profile) -> Session:
    host = os.uname()
    system = SystemInfo(
        host.sysname, host.release, host.machine, host.machine, host.nodename, Platform.LINUX
    )
    argv = sys.argv
    versions = [
        VersionInfo("pylink", __version__),
        VersionInfo("Python", sys.version.split()[0]),
    ]
    if profile.release is not None:
        versions.append(VersionInfo("Follows", profile.release.linker))
    return Session(
        os.getpid(),
        int(profile.created),
        system,
        system,
        version_info=versions,
        executable_settings=ExecutableSettings(
            sys.executable, working_directory(), shlex.join(argv[1:]) or None
        ),
        profiler_settings=ProfilerSettings(enable_nvtx=True, replay_mode="none"),
        profiler_cmdline=shlex.join(argv),
    )
