"""A report like that of a link, small enough to compare every value."""

from __future__ import annotations

from pathlib import Path

from pylink.report.display import add_display_metrics
from pylink.report.model import (
    Action,
    BarChart,
    Body,
    BodyItem,
    ExecutableSettings,
    FocusMetric,
    Header,
    MessageType,
    Metrics,
    NvtxState,
    Process,
    Report,
    RuleItem,
    RuleMessage,
    RuleResult,
    Scope,
    Section,
    SectionMetric,
    Session,
    Severity,
    SystemInfo,
    Table,
    VersionInfo,
)
from pylink.report.source.loaded import load_with_addresses

CUBIN = Path(__file__).parent.parent / "golden" / "86" / "guard" / "exec.nvlink.cubin"
PHASES = ("read", "merge", "layout", "relocate", "write")
THREAD = 4242  # the thread of the planted link


def metric(name: str, label: str) -> SectionMetric:
    return SectionMetric(name, label)


SPEED = Section(
    "LinkSpeedOfLight",
    "Speed of Link",
    10,
    Header(2, [metric("link__time_duration.sum", "Duration"), metric("link__arch", "Target")]),
    description="How fast the link was.",
)
INPUTS = Section(
    "LinkInput",
    "Link Inputs",
    20,
    Header(1, [metric("file__bytes_read.sum", "Bytes Read")]),
    [
        Body(
            [
                BodyItem(
                    table=Table("Files", columns=2, metrics=[metric("file__opened.sum", "Files")])
                ),
                BodyItem(
                    bar_chart=BarChart("Shares", metrics=[metric("link__time_share.pct", "Share")])
                ),
            ]
        )
    ],
)
SOURCE = Section(
    "LinkSource",
    "Link Source",
    100,
    metrics=Metrics(
        [
            metric("reloc__applied_at", "Relocations"),
            metric("reloc__bytes_patched_at", "Bytes Patched"),
        ],
        order=1,
    ),
)


def link_report() -> Report:
    """Return five phases and the link, with sections, a rule, NVTX ranges and source counters."""
    report = Report(
        Process(THREAD, "host.example", "pylink"),
        Session(
            THREAD,
            1_700_000_000,
            SystemInfo("Linux", computer_name="host.example", platform=2),
            version_info=[VersionInfo("pylink", "0.1.0")],
            executable_settings=ExecutableSettings(
                "/usr/bin/pylink", cmdline_arguments="-o a.cubin"
            ),
            profiler_cmdline="pylink --profile link.ncu-rep",
        ),
    )
    loaded = load_with_addresses(CUBIN.read_bytes())
    reference = report.add_source(loaded.source)
    for number, phase in enumerate(PHASES):
        action = Action(phase, f"{phase}(a.cubin)", phase, thread_id=THREAD, kernel_id=number)
        action.api_call_id = number
        action.set("link__time_duration.sum", 1_000_000 * (number + 1))
        action.set("link__time_share.pct", 12.5 * number)
        action.set("file__bytes_read.sum", 3000, instances={"a.cubin": 1000, "b.cubin": 2000})
        action.set("file__opened.sum", 2)
        action.set("link__arch", "sm_86")
        action.set("link__growth.avg", -0.25)
        add_display_metrics(action, 86, "sm_86", items=10 * (number + 1), workers=4)
        action.sections = [SPEED, INPUTS]
        action.nvtx = NvtxState()
        for domain in ("pylink", "<default domain>"):
            action.nvtx.push(THREAD, ["link", phase], domain)
        if phase in ("layout", "relocate"):
            action.nvtx.start("placed")
        action.context_id, action.context_name = 1, "sm_86"
        action.stream_id, action.stream_name = 1, "link"
        action.creation_time = 1_700_000_000
        report.actions.append(action)
    relocate = report.actions[3]
    function, start = next(iter(loaded.addresses.items()))
    relocate.mangled_name = function
    relocate.source = reference
    relocate.set("launch__function_pcs", start)
    counts = {start: 1, start + 0x20: 2}
    relocate.set("reloc__applied_at", 3, instances=counts)
    relocate.set("reloc__bytes_patched_at", 24, instances={at: 8 * n for at, n in counts.items()})
    relocate.sections = [SPEED, INPUTS, SOURCE]
    relocate.rule_results = rules()
    report.actions.append(whole_link())
    return report


def rules() -> list[RuleResult]:
    """Return results of two rules: one with a message and a focus metric, one without."""
    spoke = RuleResult("LinkDominant", "Dominating Phase", section_identifier="LinkSpeedOfLight")
    message = RuleMessage("Relocation takes most of the time.", MessageType.WARNING, name="Busy")
    focus = FocusMetric(None, "link__time_duration.sum", 4e6, Severity.HIGH, "shorten it")
    spoke.add(RuleItem(message, focus_metrics=[focus]))
    return [spoke, RuleResult("LinkQuiet", "Nothing to say")]


def whole_link() -> Action:
    """Return the action of the whole link, which contains all phases."""
    action = Action(scope=Scope.RANGE, thread_id=THREAD, api_call_id=99)
    action.set("link__time_duration.sum", 15_000_000)
    action.set("link__arch", "sm_86")
    add_display_metrics(action, 86, "sm_86")
    action.sections = [SPEED]
    return action
