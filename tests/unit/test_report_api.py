"""The interface of scripts: what `ncu_report` users rely on, over a report of a link."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import oracle
from helpers.report_link import CUBIN, PHASES, link_report
from helpers.report_nvtx import nvtx_report

import pylink.report as ncu_report
from pylink.report import IAction, IContext, IMetric, INvtxRange, report_bytes, write_report
from pylink.report.api.metricname import unit
from pylink.report.model import (
    Action,
    Instance,
    Metric,
    NvtxColor,
    NvtxEventAttributes,
    NvtxMessage,
    NvtxPayload,
    NvtxRegisteredString,
    NvtxState,
    Report,
    Source,
    ValueKind,
)
from pylink.report.source.loaded import load_with_addresses

CONTEXT = IContext(link_report())
RANGE = CONTEXT[0]
ANY_RANGE: Any = RANGE  # for what types forbid


def action_of(*metrics: Metric) -> IAction:
    action = Action("a")
    for metric in metrics:
        action.add(metric)
    return IContext(Report(actions=[action]))[0][0]


def test_context_is_a_sequence_of_one_range() -> None:
    assert CONTEXT.num_ranges() == len(CONTEXT) == len(list(CONTEXT)) == 1
    assert CONTEXT.range_by_idx(0) is CONTEXT[0] is CONTEXT[-1]
    assert CONTEXT[0:1] == (CONTEXT[0],)
    assert CONTEXT.range_by_idx(1) is None
    assert CONTEXT.get_version() == "2022.3.0"
    assert CONTEXT.frontend() is None
    assert CONTEXT.controller() is None


def test_range_is_a_sequence_of_actions() -> None:
    assert RANGE.num_actions() == len(RANGE) == len(PHASES) + 1
    assert [str(each) for each in RANGE] == [*PHASES, "range"]
    assert [str(each) for each in RANGE[1:3]] == ["merge", "layout"]
    assert str(RANGE[-2]) == "write"
    assert RANGE.action_by_idx(len(RANGE)) is None


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: CONTEXT[9], IndexError, "IContext index out of range"),
        (lambda: CONTEXT[-2], IndexError, "IContext index out of range"),
        (lambda: ANY_RANGE["x"], TypeError, "IRange indices must be integers or slices, not str"),
        (lambda: RANGE[99], IndexError, "IRange index out of range"),
        (lambda: RANGE[0]["nope"], KeyError, "no metric named 'nope'"),
        (lambda: ANY_RANGE[0][5], TypeError, "IAction metric keys must be strings, not int"),
        (lambda: ANY_RANGE[0].nvtx_state()[99], KeyError, "INvtxState invalid ID"),
    ],
)
def test_errors_are_those_of_ncu_report(
    call: Callable[[], object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as caught:
        call()
    assert caught.value.args == (text,)


def test_action_names() -> None:
    action = RANGE[3]
    assert action.name() == action.name(IAction.NameBase_FUNCTION) == "relocate"
    assert action.name(IAction.NameBase_DEMANGLED) == "relocate(a.cubin)"
    assert action.name(IAction.NameBase_MANGLED) != "relocate"
    assert action.name(3) is None
    assert RANGE[-1].name() == "range"
    assert RANGE[-1].workload_type() == IAction.WorkloadType_RANGE
    assert action.workload_type() == IAction.WorkloadType_KERNEL


def test_action_is_a_collection_of_metric_names() -> None:
    action = RANGE[0]
    assert tuple(action) == action.metric_names() == tuple(sorted(action.metric_names()))
    assert len(action) == len(action.metric_names())
    assert "link__arch" in action
    assert "nope" not in action
    assert action.metric_by_name("nope") is None


def test_values_of_each_kind() -> None:
    number, real, text = Metric("n", 7), Metric("r", 2.75), Metric("t", "abc")
    action = action_of(number, real, text)
    table = {
        each.name(): (
            each.kind(),
            each.value(),
            each.as_uint64(),
            each.as_double(),
            each.as_string(),
        )
        for each in map(action.__getitem__, action)
    }
    assert table == {
        "n": (IMetric.ValueKind_UINT64, 7, 7, 7.0, None),
        "r": (IMetric.ValueKind_DOUBLE, 2.75, 2, 2.75, None),
        "t": (IMetric.ValueKind_STRING, "abc", 0, 0.0, "abc"),
    }
    assert action["n"].has_value()
    assert action["n"].has_value(IMetric.ValueKind_ANY)
    assert not action["n"].has_value(IMetric.ValueKind_UINT32)


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_numbers_that_are_no_integers(value: float) -> None:
    assert action_of(Metric("m", value))["m"].as_uint64() == 0


def test_instances_and_their_ids() -> None:
    metric = RANGE[0]["file__bytes_read.sum"]
    assert metric.num_instances() == 2
    assert [metric.value(index) for index in range(3)] == [1000, 2000, None]
    assert (metric.kind(2), metric.as_uint64(2)) == (IMetric.ValueKind_UNKNOWN, 0)
    ids = metric.correlation_ids()
    assert ids is not None
    assert ids.name() == metric.name()
    assert [ids.value(index) for index in range(2)] == ["a.cubin", "b.cubin"]
    assert RANGE[0]["link__arch"].correlation_ids() is None


def test_metric_of_instances_alone() -> None:
    metric = action_of(Metric("m", instances=[Instance(4, 1), Instance(5, 2)]))["m"]
    assert (metric.kind(), metric.value(), metric.has_value()) == (
        IMetric.ValueKind_UINT64,
        0,
        False,
    )


def test_metric_without_anything_does_not_crash() -> None:
    metric = action_of(Metric("m"))["m"]
    assert (metric.kind(), metric.value(), metric.as_string()) == (0, None, None)


def test_objects_keep_their_report() -> None:
    action = IContext(link_report())[0][0]
    gc.collect()
    assert action["link__arch"].value() == "sm_86"


def test_added_metrics_are_in_the_file() -> None:
    report = link_report()
    action = IContext(report)[0][0]
    added = action.add_integer_metric("n", IMetric.ValueKind_UINT32, 5)
    assert added is not None
    assert added.value() == 5
    assert action.add_integer_metric("n", IMetric.ValueKind_STRING, 5) is None
    action.add_double_metric("d", IMetric.ValueKind_DOUBLE, 2)
    action.add_string_metric("s", IMetric.ValueKind_STRING, "text")
    metrics = ncu_report.parse_report(report_bytes(report)).actions[0].metrics
    assert [(metrics[each].value, metrics[each].kind) for each in "nds"] == [
        (5, ValueKind.UINT32),
        (2.0, ValueKind.DOUBLE),
        ("text", ValueKind.STRING),
    ]


def test_mutable_metric() -> None:
    action = action_of()
    metric = action.add_metric("m")
    assert metric.set_uint64(IMetric.ValueKind_ANY, 3)
    assert action["m"].value() == 3
    assert metric.set_double(0, IMetric.ValueKind_FLOAT, 1.5)
    assert metric.set_string(1, IMetric.ValueKind_ANY, "x")
    ids = metric.mutable_correlation_ids()
    assert ids.set_uint64(0, IMetric.ValueKind_UINT64, 16)
    assert ids.set_string(1, IMetric.ValueKind_STRING, "name")
    assert action.add_metric("m").num_instances() == 2
    found = action["m"].correlation_ids()
    assert found is not None
    assert [found.value(0), found.value(1)] == [16, "name"]


def test_mutable_metric_refuses() -> None:
    metric = action_of().add_metric("m")
    assert not metric.set_uint64(IMetric.ValueKind_UINT32, 1 << 32)
    assert not metric.set_uint64(IMetric.ValueKind_ANY, -1)
    assert not metric.set_double(IMetric.ValueKind_STRING, 1.0)
    assert not metric.set_string(5, IMetric.ValueKind_STRING, "no instance 4")
    assert not metric.mutable_correlation_ids().set_uint64(0, IMetric.ValueKind_UINT64, 1)
    with pytest.raises(TypeError):
        metric.set_uint64(1)


@pytest.mark.parametrize(
    ("name", "kind", "subtype", "rollup", "units"),
    [
        ("dram__bytes.sum.per_second", "COUNTER", "PER_SECOND", "SUM", "byte/second"),
        ("gpu__time_duration.sum", "COUNTER", None, "SUM", "nsecond"),
        (
            "sm__warps_active.avg.per_cycle_active",
            "COUNTER",
            "PER_CYCLE_ACTIVE",
            "AVG",
            "warp",
        ),
        (
            "gpu__dram_throughput.max.pct_of_peak_sustained_elapsed",
            "THROUGHPUT",
            "PCT_OF_PEAK_SUSTAINED_ELAPSED",
            "MAX",
            "%",
        ),
        ("sm__cycles_active.min", "COUNTER", None, "MIN", "cycle"),
        ("l1tex__t_sector_hit_rate.pct", "RATIO", "PCT", None, "%"),
        ("smsp__average_warp_latency.ratio", "RATIO", "RATIO", None, "warp"),
        ("sm__inst_executed.max_rate", "RATIO", "MAX_RATE", None, "inst"),
        ("dram__bytes.sum.peak_sustained", "COUNTER", "PEAK_SUSTAINED", "SUM", "byte/cycle"),
        ("launch__registers_per_thread", "OTHER", None, None, "register/thread"),
        ("device__attribute_warp_size", "OTHER", None, None, ""),
        ("derived__branch_pct", "OTHER", None, None, "%"),
        ("breakdown:gpu__throughput.avg.pct", "OTHER", None, None, "%"),
        ("file__bytes_read.sum", "COUNTER", None, "SUM", "byte"),
        ("sect__merged.sum", "COUNTER", None, "SUM", ""),
        ("link__arch", "OTHER", None, None, ""),
    ],
)
def test_names_say_type_and_unit(
    name: str, kind: str, subtype: str | None, rollup: str | None, units: str
) -> None:
    metric = action_of(Metric(name, 1))[name]
    assert metric.metric_type() == getattr(IMetric, f"MetricType_{kind}")
    wanted = subtype and getattr(IMetric, f"MetricSubtype_{subtype}")
    assert metric.metric_subtype() == wanted
    assert metric.rollup_operation() == (rollup and getattr(IMetric, f"RollupOperation_{rollup}"))
    assert metric.unit() == unit(name) == units


def test_metrics_of_links_are_described() -> None:
    metric = action_of(Metric("reloc__left_dynamic.sum", 1))["reloc__left_dynamic.sum"]
    assert metric.description() == "relocations left to the loader"
    assert (
        action_of(Metric("sm__cycles_active.avg", 1))["sm__cycles_active.avg"].description() == ""
    )
    name = "link__merge_time_share.pct"
    assert action_of(Metric(name, 1))[name].description().endswith("the whole link that merge took")
    name = "link__debug_cpu_time_share.pct"
    described = action_of(Metric(name, 1))[name].description()
    assert described == "estimated share of processor time spent on debug bytes"


def test_nvtx_state() -> None:
    state = RANGE[2].nvtx_state()
    assert state is not None
    assert len(state) == 2
    assert list(state) == list(state.domains())
    domain = state[state.domains()[0]]
    assert (str(domain), domain.push_pop_ranges()) == ("pylink", ("link", "layout"))
    default = state[state.domains()[1]]
    assert default.start_end_ranges() == ("placed",)
    opened = default.start_end_range(0)
    assert opened is not None
    assert (opened.name(), opened.has_attributes(), opened.message()) == ("placed", False, "")
    assert default.push_pop_range(2) is None
    assert state.domain_by_id(99) is None
    assert RANGE[-1].nvtx_state() is None


def test_nvtx_attributes() -> None:
    action = Action(thread_id=1, nvtx=NvtxState())
    assert action.nvtx is not None
    action.nvtx.push(1, ["numbers", "text"])
    numbers, text = action.nvtx.threads[0].push_pop_domains[0].stack
    numbers.attributes = NvtxEventAttributes(
        3, 9, NvtxColor(1, 0xFF00FF00), NvtxPayload(2, ll_value=-5), NvtxMessage(1, "hello")
    )
    text.attributes = NvtxEventAttributes(
        payload=NvtxPayload(7, str_value="{}"), message=NvtxMessage(3, handle=12)
    )
    action.nvtx.domains[0].strings.append(NvtxRegisteredString(12, "registered"))
    state = IContext(Report(actions=[action]))[0][0].nvtx_state()
    assert state is not None
    first, second = (state[1].push_pop_range(index) for index in range(2))
    assert first is not None
    assert second is not None
    assert (first.category(), first.color(), first.message()) == (9, 0xFF00FF00, "hello")
    assert first.payload_type() == INvtxRange.PayloadType_PAYLOAD_INT64
    assert (first.payload_as_double(), first.payload_as_string()) == (-5.0, "")
    assert second.message() == "registered"
    assert (second.payload_as_string(), second.payload_as_uint64()) == ("{}", 0)


def test_rule_results_as_dicts() -> None:
    spoke, quiet = RANGE[3].rule_results_as_dicts()
    assert spoke == {
        "name": "Dominating Phase",
        "rule_identifier": "LinkDominant",
        "section_identifier": "LinkSpeedOfLight",
        "rule_message": {
            "title": "Busy",
            "message": "Relocation takes most of the time.",
            "type": "warning",
        },
        "focus_metrics": [
            {
                "name": "link__time_duration.sum",
                "value": 4e6,
                "severity": "high",
                "info": "shorten it",
            }
        ],
    }
    assert quiet["rule_identifier"] == "LinkQuiet"
    assert RANGE[0].rule_results_as_dicts() == []


@pytest.mark.parametrize("binary", [None, b"", b"no cubin", CUBIN.read_bytes()[:200]])
def test_code_that_cannot_be_read(binary: bytes | None) -> None:
    report = Report(actions=[Action(source=Source(1))], sources=[Source(1, binary=binary)])
    action = IContext(report)[0][0]
    assert action.source_info(0x100) is None
    assert action.ptx_by_pc(0x100) == ""
    assert action.sass_by_pc(0x100) == ""
    assert action.source_files() == {}


@oracle.needs_oracle
def test_source_lines_of_a_linked_cubin() -> None:
    source = "__global__ void k(int *p) {\n  p[threadIdx.x] = 7;\n}\n"
    cubin = oracle.link([oracle.compile(source, "86", ["-lineinfo"])], "86").image
    assert cubin is not None
    loaded = load_with_addresses(cubin)
    (start,) = loaded.addresses.values()
    report = Report(actions=[Action()])
    report.actions[0].source = report.add_source(loaded.source)
    action = IContext(report)[0][0]
    lines = [action.source_info(start + 16 * index) for index in range(8)]
    assert {each.line() for each in lines if each} <= {1, 2, 3}
    assert 2 in {each.line() for each in lines if each}
    assert all(each.file_name().endswith(".cu") for each in lines if each)
    assert action.source_info(start - 1) is None


SCRIPT = """
import sys
import pylink.report as ncu_report

loaded = ncu_report.load_report(sys.argv[1])
for number in range(loaded.num_ranges()):
    part = loaded.range_by_idx(number)
    for index in part.actions_by_nvtx(["Bottom/*/Top"], []):
        print(part.action_by_idx(index).name())
"""


def test_script_for_ncu_report(tmp_path: Path) -> None:
    write_report(nvtx_report(), tmp_path / "r.ncu-rep")
    (tmp_path / "script.py").write_text(SCRIPT)
    said = subprocess.run(
        [sys.executable, tmp_path / "script.py", tmp_path / "r.ncu-rep"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.split() == ["k0", "k1", "k2"]
