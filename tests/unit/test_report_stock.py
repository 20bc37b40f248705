"""The sections and rules of links that pylink ships: what each rule says, and when it is silent."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pylink.report.model import Action, MessageType, Report, Scalar, Scope
from pylink.report.rules.evaluation import apply_rules
from pylink.report.rules.rulefiles import load_rules
from pylink.report.sections.directories import STOCK_DIRECTORY
from pylink.report.sections.insertion import apply_sections
from pylink.report.sections.sectionfiles import load

MILLISECOND = 1_000_000

# A phase that no rule finds fault with: 10 ms, a fifth of a link.
PHASE: Mapping[str, Scalar] = {
    "link__time_duration.sum": 10 * MILLISECOND,
    "link__cpu_time_duration.sum": 8 * MILLISECOND,
    "link__time_share.pct": 20.0,
    "link__cpu_time_share.pct": 20.0,
    "file__bytes_input.sum": 0,
    "file__bytes_read.sum": 0,
    "dedup__pairs_tested.sum": 10,
    "reloc__applied.sum": 5000,
}

Instances = Mapping[str, Mapping[str, int]]


def said(
    name: str, values: Mapping[str, Scalar], instances: Instances, scope: Scope = Scope.LAUNCH
) -> dict[str, tuple[int, str, dict[str | None, float | None]]]:
    """By rule: the type and text of its message, and its focus metrics."""
    action = Action(name, name, name, scope=scope)
    for metric, value in {**PHASE, **values}.items():
        action.set(metric, value)
    for metric, by_id in instances.items():
        action.set(metric, sum(by_id.values()), by_id)
    report = Report(actions=[action])
    apply_sections(report, load([STOCK_DIRECTORY]).select(sets=["full"]))
    apply_rules(report, load_rules([STOCK_DIRECTORY]).rules)
    return {
        result.identifier: (
            message.type,
            message.message,
            {each.metric_name: each.metric_value for each in focus},
        )
        for result in action.rule_results
        for message, focus in result.messages()
    }


CASES: list[tuple[str, str, Mapping[str, Scalar], Instances, str, float | None]] = [
    (
        "LinkColdCache",
        "read",
        {
            "file__cache_hit.pct": 25.0,
            "file__disk_bytes.sum": 3_000_000,
            "file__disk_wait_duration.sum": 4 * MILLISECOND,
        },
        {},
        "3 MB came from disk, and reading waited 4 ms for the disk or for a processor.",
        8.0,
    ),
    (
        "LinkDebugBytes",
        "read",
        {"link__debug_cpu_time_share.pct": 8.0, "file__with_debug_info.sum": 2},
        {
            "file__bytes_input.sum": {"a.cubin": 600, "b.cubin": 400},
            "file__debug_bytes.sum": {"a.cubin": 100, "b.cubin": 300},
            "file__debug_bytes_by_option.sum": {"-G": 400},
        },
        "40% of the input is debug data, most of it in b.cubin (300 B), a.cubin (100 B). "
        "Inputs with .debug_info, which -G produces, have 100% of it: if source lines are enough, "
        "compile with -lineinfo",
        8.0,
    ),
    (
        "LinkDebugBytes",
        "read",
        {"link__debug_cpu_time_share.pct": 8.0, "file__with_debug_info.sum": 0},
        {
            "file__bytes_input.sum": {"a.cubin": 600, "b.cubin": 400},
            "file__debug_bytes.sum": {"a.cubin": 100, "b.cubin": 300},
            "file__debug_bytes_by_option.sum": {"-lineinfo": 300, "-G": 100},
        },
        "40% of the input is debug data, most of it in b.cubin (300 B), a.cubin (100 B). "
        "Inputs with only line data, as from -lineinfo, have 75% of it: omit the option",
        8.0,
    ),
    (
        "LinkDominantInput",
        "read",
        {},
        {"file__bytes_read.sum": {"big.a": 9000, "b": 10, "c": 10, "d": 10}},
        "big.a has 9 kB of the 9.03 kB of 4 inputs: savings in it count most. None of it is "
        "debug data",
        None,
    ),
    (
        "LinkDominatingPhase",
        "merge",
        {"link__cpu_time_share.pct": 80.0, "link__cpu_time_duration.sum": 80 * MILLISECOND},
        {"link__step_time_duration.sum": {"resolve": MILLISECOND, "find_live": 5 * MILLISECOND}},
        "merge takes 80% of the link's processor time. Its longest step in wall time is "
        "find_live with 5 ms. --profile-aprof",
        None,
    ),
    (
        "LinkDedupStage",
        "merge",
        {"link__dedup_cpu_time_share.pct": 8.0, "dedup__bytes_saved.sum": 848},
        {"dedup__time_duration.sum": {"primary": 4 * MILLISECOND, "headers": MILLISECOND}},
        "Looking for duplicates takes 3.2 ms of processor time, 8% of the link's. "
        "--merc-dedup=off omits it, and makes the output 848 B longer.",
        8.0,
    ),
    (
        "LinkPrefilter",
        "merge",
        {"dedup__prefilter_hits.sum": 100, "dedup__prefilter_false_positives.sum": 20},
        {},
        "20 of 100 prefilter hits were false",
        None,
    ),
    (
        "LinkKeptRelocations",
        "relocate",
        {},
        {
            "reloc__left_dynamic.sum": {"R_CUDA_64": 6000, "R_CUDA_32": 10},
            "reloc__left_by_section.sum": {".text.*": 6005, ".debug_line": 5},
        },
        "6005 relocations are left to the loader: .text.* (6005). 5 more change debug data. By "
        "type, all that are kept: R_CUDA_64 (6000), R_CUDA_32 (10).",
        None,
    ),
    (
        "LinkGrowth",
        "init",
        {"runs__growth_exponent.ratio": 2.0},
        {},
        "Over these reports the time grows as size ** 2.00: at twice the size expect 4.0 times",
        None,
    ),
]


@pytest.mark.parametrize(("rule", "phase", "values", "instances", "text", "speedup"), CASES)
def test_what_rules_say(
    rule: str,
    phase: str,
    values: Mapping[str, Scalar],
    instances: Instances,
    text: str,
    speedup: float | None,
) -> None:
    found = said(phase, values, instances)
    assert list(found) == [rule]
    kind, message, focus = found[rule]
    assert kind == MessageType.WARNING
    assert message.startswith(text)
    assert focus.get("link__estimated_speedup.pct") == speedup
    assert ("Estimated speedup" in message) == (speedup is not None)


@pytest.mark.parametrize(
    ("rule", "phase", "values", "instances"),
    [case[:4] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_the_whole_link_repeats_no_phase(
    rule: str, phase: str, values: Mapping[str, Scalar], instances: Instances
) -> None:
    assert rule in said(phase, values, instances)
    assert said("", values, instances, Scope.RANGE) == {}


def test_a_link_without_faults_is_told_nothing() -> None:
    assert said("merge", {}, {}) == {}


@pytest.mark.parametrize(
    ("rule", "phase", "values", "instances"),
    [
        # Loading modules, which is not a matter of the link's size.
        (
            "LinkDominatingPhase",
            "merge",
            {
                "link__cpu_time_share.pct": 80.0,
                "link__cpu_time_duration.sum": 80 * MILLISECOND,
                "link__loading_time_duration.sum": 70 * MILLISECOND,
            },
            {"link__step_time_duration.sum": {"fold_mercury": 75 * MILLISECOND}},
        ),
        (
            "LinkPrefilter",
            "merge",
            {"dedup__prefilter_hits.sum": 100, "dedup__prefilter_false_positives.sum": 10},
            {},
        ),
        ("LinkDedupStage", "merge", {"link__dedup_cpu_time_share.pct": 4.0}, {}),
        # Frames, which no option leaves out.
        (
            "LinkDebugBytes",
            "read",
            {"link__debug_cpu_time_share.pct": 8.0},
            {
                "file__bytes_input.sum": {"a.cubin": 600},
                "file__debug_bytes.sum": {"a.cubin": 300},
                "file__debug_bytes_by_option.sum": {"always": 300},
            },
        ),
        # Most that is left to the loader would be few without debug data.
        (
            "LinkKeptRelocations",
            "relocate",
            {},
            {
                "reloc__left_dynamic.sum": {"R_CUDA_32": 1500},
                "reloc__left_by_section.sum": {".debug_line": 600, ".text.*": 900},
            },
        ),
        # The wait is not the disk's where all inputs were in the cache.
        (
            "LinkColdCache",
            "read",
            {"file__cache_hit.pct": 100.0, "file__disk_wait_duration.sum": 4 * MILLISECOND},
            {},
        ),
    ],
    ids=["start-up", "few false hits", "little", "frames", "few without debug", "warm"],
)
def test_when_rules_are_silent(
    rule: str, phase: str, values: Mapping[str, Scalar], instances: Instances
) -> None:
    assert rule not in said(phase, values, instances)


def test_a_small_gain_is_no_headline() -> None:
    values = {"link__debug_cpu_time_share.pct": 4.0, "file__with_debug_info.sum": 0}
    instances = {
        "file__bytes_input.sum": {"a.cubin": 600},
        "file__debug_bytes.sum": {"a.cubin": 500},
    }
    kind, _, _ = said("read", values, instances)["LinkDebugBytes"]
    assert kind == MessageType.OK


# The same figures as above with another cause: what is said, and what may not be said.
OTHER_CAUSES: list[tuple[str, str, Mapping[str, Scalar], Instances, str, str]] = [
    (
        "LinkKeptRelocations",
        "relocate",
        {},
        {
            "reloc__left_dynamic.sum": {"R_CUDA_32": 10008},
            "reloc__left_by_section.sum": {".debug_info": 9936, ".nv.constant0.*": 72},
        },
        "9936 of the 10008 relocations that the output keeps change debug data, "
        ".debug_info (9936): they belong to -G or -lineinfo",
        "loader",
    ),
    (
        "LinkDebugBytes",
        "read",
        {"link__debug_cpu_time_share.pct": 8.0},
        {
            "file__bytes_input.sum": {f"{number}.cubin": 1000 for number in range(400)},
            "file__debug_bytes.sum": {f"{number}.cubin": 500 for number in range(400)},
            "file__debug_bytes_by_option.sum": {"-G": 200_000},
        },
        "50% of the input is debug data, in 400 inputs; 0.cubin (500 B) has the largest share.",
        "most of it in",
    ),
    (
        "LinkDebugBytes",
        "read",
        {"link__debug_cpu_time_share.pct": 8.0, "file__with_debug_info.sum": 1},
        {
            "file__bytes_input.sum": {"a.cubin": 600, "b.cubin": 400},
            "file__debug_bytes.sum": {"a.cubin": 10, "b.cubin": 390},
            "file__debug_bytes_by_option.sum": {"-G": 10, "-lineinfo": 390},
        },
        "40% of the input is debug data, most of it in b.cubin (390 B), a.cubin (10 B). Inputs "
        "with only line data",
        "-G",
    ),
    (
        "LinkDominantInput",
        "read",
        {},
        {
            "file__bytes_read.sum": {"big.a": 9000, "b": 10, "c": 10, "d": 10},
            "file__debug_bytes.sum": {"big.a": 8000},
            "file__kept_bytes.sum": {"big.a": 8500},
        },
        "big.a has 9 kB of the 9.03 kB of 4 inputs: savings in it count most. 8 kB "
        "of it is debug data, and the output has 8.5 kB of its sections.",
        "code",
    ),
    (
        "LinkDominatingPhase",
        "cicc-lto",
        {"link__cpu_time_share.pct": 80.0, "link__cpu_time_duration.sum": 80 * MILLISECOND},
        {"link__step_time_duration.sum": {"compile_lto": 80 * MILLISECOND}},
        "cicc-lto takes 80% of the link's processor time. Its longest step in wall time is "
        "compile_lto with 80 ms. This is the time of the compiler",
        "--profile-aprof",
    ),
    (
        "LinkGrowth",
        "init",
        {"runs__growth_exponent.ratio": 0.2},
        {},
        "Over these reports the time grows as size ** 0.20: more slowly than the input.",
        "proportion",
    ),
]


@pytest.mark.parametrize(
    ("rule", "phase", "values", "instances", "text", "unsaid"),
    OTHER_CAUSES,
    ids=[f"{case[0]}-{number}" for number, case in enumerate(OTHER_CAUSES)],
)
def test_another_cause_is_not_blamed_on_the_usual_one(
    rule: str,
    phase: str,
    values: Mapping[str, Scalar],
    instances: Instances,
    text: str,
    unsaid: str,
) -> None:
    _, message, _ = said(phase, values, instances)[rule]
    assert message.startswith(text)
    assert unsaid not in message


def test_growth_in_proportion_is_praised() -> None:
    kind, text, _ = said("init", {"runs__growth_exponent.ratio": 1.02}, {})["LinkGrowth"]
    assert kind == MessageType.OK
    assert text == "Over these reports the time grows as size ** 1.02: in proportion."


def test_stock_files_are_whole() -> None:
    sections, rules = load([STOCK_DIRECTORY]), load_rules([STOCK_DIRECTORY])
    assert (sections.errors, sections.warnings) == ([], [])
    assert (rules.errors, rules.warnings) == ([], [])
    known = {each.section.identifier for each in sections.sections}
    assert {rule.section for rule in rules.rules} - {None} <= known
    assert all(rule.description and rule.name for rule in rules.rules)
