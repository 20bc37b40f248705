"""Creates the report of a profile for Nsight Compute: an action for each phase and comparison.

Names of metrics are `unit__quantity.rollup`: `link` is a whole phase, `file` reading, `sym`, `sect`
and `reloc` the tables, `dedup` comparing, `elf` the output, `py` the interpreter. Their words
determine the units that `ncu` shows. Most instances are by input file, section family, relocation
type, step or pair. docs/profile.md lists all of them.
"""

from __future__ import annotations

import gc
import os
import shlex
import sys
from collections.abc import Iterable
from threading import get_native_id

from pylink import __version__
from pylink.dedup.saving import saved_bytes
from pylink.files.workdir import working_directory
from pylink.profile import metrics
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.mercury.folding import FoldResult
    from pylink.profile.model import Profile
    from pylink.profile.phase import Phase
    from pylink.profile.results import PhaseResults

DOMAIN = "pylink"  # of the NVTX ranges
# Names of the actions that are not phases. The two streams have the same names.
LINK = "link"
DEDUP = "dedup"

# Numbers of streams: one for the phases of the link, one for its comparisons of Mercury sections.
MAIN_STREAM, DEDUP_STREAM = 1, 2

# Largest number of compared pairs of inputs for which each has an action of its own: every action
# contains all sections of the report.
MAX_PAIRS = 64


class _ReportBuilder:
    """Adds the actions of one report, in time order."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.thread = get_native_id()
        # Number of threads that read files.
        self.reader_count = 1 + max((file.lane for file in profile.files), default=0)
        self.report = Report(Process(os.getpid(), os.uname().nodename, "pylink"), _session(profile))

    def add_action(
        self, name: str, detail: str, items: int, stack: Iterable[str], stream: int = MAIN_STREAM
    ) -> Action:
        """Add an action that handled `items` items, within the NVTX ranges `stack`.

        `detail` stands in brackets after the name, and `stream` is MAIN_STREAM or DEDUP_STREAM.
        """
        profile = self.profile
        action = Action(name, f"{name}({detail})", name, thread_id=self.thread)
        action.kernel_id = action.api_call_id = len(self.report.actions)
        action.creation_time = int(profile.created)
        action.context_id, action.context_name = 0, profile.arch
        action.stream_id, action.stream_name = stream, LINK if stream == MAIN_STREAM else DEDUP
        action.program_handle = 1
        thread_count = self.reader_count if name == "read" else 1
        state = action.nvtx = NvtxState()
        for domain in (DOMAIN, DEFAULT_DOMAIN):
            state.push(self.thread, [LINK, *stack], domain)
            if thread_count > 1:
                state.start("helper", domain)
        add_display_metrics(action, profile.sm, profile.arch, items, thread_count)
        action.set("link__target_arch", profile.arch)
        self.report.actions.append(action)
        return action


def link_report(profile: Profile, results: PhaseResults | None = None) -> Report:
    """Create the report of a link; `results` adds relocations at instructions, and output bytes."""
    if results is not None and profile.folding is not None and profile.saved_bytes is None:
        profile.saved_bytes = saved_bytes(results.objects) if results.placed.merged.stand_ins else 0
    builder = _ReportBuilder(profile)
    for phase in profile.phases:
        action = builder.add_action(
            phase.tag, _describe_work(phase, profile), _items(phase), [phase.tag]
        )
        metrics.add_cost(action, phase, profile)
        _add_counts(action, phase, profile)
        metrics.add_advice(action, phase, profile, results)
        if phase.tag == "merge" and profile.folding is not None:
            _add_dedup_actions(builder, profile.folding)
        if phase.tag == "relocate" and results is not None:
            add_source_counters(builder.report, action, results)
        if phase.tag == "write" and results is not None:
            metrics.add_composition(action, profile, results)
    link_action = builder.add_action(LINK, profile.output or "", len(profile.names), [])
    link_action.scope = Scope.RANGE
    metrics.add_totals(link_action, profile, results)
    _add_interpreter(link_action)
    for action in builder.report.actions:
        action.set(TIME, action.metrics["link__time_duration.sum"].value)
    return builder.report


def _describe_work(phase: Phase, profile: Profile) -> str:
    """Return the size of a phase's work, or the name of the written file."""
    return profile.output or "" if phase.tag == "write" else f"{phase.size} {phase.unit}"


def _items(phase: Phase) -> int:
    """Return the number of a phase's sections, at least 1; tools show it as a kernel's grid."""
    return max(phase.sections, 1)


def _add_counts(action: Action, phase: Phase, profile: Profile) -> None:
    """Add the metrics of what a phase handled: files, sections, pairs, relocations or output."""
    if phase.tag == "read":
        metrics.add_files(action, profile)
    if phase.tag in ("merge", "layout"):
        metrics.add_sections(action, profile)
    if phase.tag == "merge" and profile.folding is not None:
        metrics.add_dedup(action, profile.folding, profile.saved_bytes)
    if phase.tag == "relocate":
        metrics.add_relocations(action, profile)
    if phase.tag in ("finalize", "write"):
        metrics.add_output(action, phase)


def _add_dedup_actions(builder: _ReportBuilder, folding: FoldResult) -> None:
    """Add an action for all comparisons, and one for each pair unless there are too many."""
    profile, comparisons = builder.profile, folding.compared
    stack = ["merge", "fold_mercury"]
    dedup_action = builder.add_action(
        DEDUP, f"{len(comparisons)} pairs", len(comparisons), stack, DEDUP_STREAM
    )
    metrics.add_dedup(dedup_action, folding, profile.saved_bytes)
    duration_ns = sum(folding.stats.stage_ns)
    dedup_action.set("link__time_duration.sum", duration_ns)
    metrics.add_share(dedup_action, Cost(wall_ns=duration_ns, cpu_ns=duration_ns), profile)
    for pair in comparisons if len(comparisons) <= MAX_PAIRS else ():
        names = f"{pair.candidate.name}, {pair.reference.name}"
        metrics.add_pair(builder.add_action(DEDUP, names, 1, stack, DEDUP_STREAM), pair, profile)


def _add_interpreter(action: Action) -> None:
    """Add counts of the interpreter since it started."""
    action.set("py__gc_runs.sum", sum(generation["collections"] for generation in gc.get_stats()))
    action.set("py__alloc_blocks_live.sum", sys.getallocatedblocks())


def _session(profile: Profile) -> Session:
    """Return the session: this process, its machine and its versions."""
    host = os.uname()
    system = SystemInfo(
        host.sysname, host.release, host.machine, host.machine, host.nodename, Platform.LINUX
    )
    argv = sys.argv
    versions = [VersionInfo("pylink", __version__), VersionInfo("Python", sys.version.split()[0])]
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
