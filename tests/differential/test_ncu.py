"""`ncu --import` over a report of ours: metrics, sections, rules, ranges and code are all seen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers import ncu, oracle
from helpers.report_link import PHASES, SOURCE, link_report

import pylink
from pylink.report import IContext, read_report, write_report
from pylink.report.display import add_display_metrics
from pylink.report.model import (
    Action,
    MessageType,
    NvtxState,
    Process,
    Report,
    RuleItem,
    RuleMessage,
    RuleResult,
    Scope,
    SourceFile,
    SourceFiles,
)
from pylink.report.source.loaded import load_with_addresses

pytestmark = ncu.needs_ncu

NAMES = [f"{each}(a.cubin)" for each in PHASES]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("ncu") / "link.ncu-rep"
    write_report(link_report(), made)
    return made


def columns(rows: list[list[str]]) -> list[dict[str, str]]:
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def test_raw_page_has_every_metric_and_its_unit(path: Path) -> None:
    units, *actions = columns(ncu.ncu_csv(path, "--page", "raw", "--print-units", "base"))
    assert [each["Kernel Name"] for each in actions] == [*NAMES, "range"]
    assert units["link__time_duration.sum"] == "nsecond"
    assert units["file__bytes_read.sum"] == "byte"
    assert units["link__time_share.pct"] == "%"
    assert [each["link__time_duration.sum"] for each in actions] == [
        *(str(1_000_000 * number) for number in range(1, 6)),
        "15000000",
    ]
    assert {each["link__growth.avg"] for each in actions[:-1]} == {"-0.25"}
    first = actions[0]
    assert (first["Process ID"], first["Process Name"], first["Host Name"]) == (
        "4242",
        "pylink",
        "host.example",
    )
    assert (first["Context"], first["Stream"], first["link__arch"]) == ("sm_86", "link", "sm_86")


def test_raw_page_holds_no_metric_that_the_model_lacks(path: Path) -> None:
    names = set(ncu.ncu_csv(path, "--page", "raw")[0])
    ours = {name for action in link_report().actions for name in action.metrics}
    assert {each for each in names if "__" in each} == ours


def test_details_page_has_sections_and_rules(path: Path) -> None:
    rows = ncu.ncu_csv(path, "--page", "details", "--print-units", "base")
    section = rows[0].index("Section Name")
    of_relocate = [each[section:] for each in rows if "relocate(a.cubin)" in each]
    assert [each for each in of_relocate if len(each) == 5] == [
        ["Speed of Link", "Target", "", "sm_86", ""],
        ["Speed of Link", "Duration", "nsecond", "4000000", ""],
        ["Link Inputs", "Bytes Read", "byte", "3000", ""],
    ]
    # Rows of rules have more columns, and the section's identifier in place of its name.
    assert [each for each in of_relocate if len(each) > 5] == [
        [
            *("LinkSpeedOfLight", "", "", ""),
            *("LinkDominant", "WRN", "Relocation takes most of the time."),
        ]
    ]


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--details-all",),
        ("--print-rule-details",),
        ("--print-metric-instances", "values", "--page", "raw"),
    ],
)
def test_text_pages_have_no_warnings(path: Path, options: tuple[str, ...]) -> None:
    said = ncu.ncu(path, *options)
    assert "==WARNING==" not in said
    # Only the range is of no context and has no number of its own.
    if "raw" not in options:
        lines = [line.strip() for line in said.splitlines() if "n/a" in line]
        assert [line.partition(",")[0] for line in lines] == ["range"]


def test_rule_details_have_the_focus_metric(path: Path) -> None:
    said = re.sub(r"\s+", " ", ncu.ncu(path, "--print-rule-details"))
    assert "Relocation takes most of the time." in said
    assert "Metric: link__time_duration.sum Value : 4000000.000000 Info : shorten it" in said


def test_instances_are_printed(path: Path) -> None:
    said = ncu.ncu(path, "--page", "raw", "--print-metric-instances", "values")
    assert len(re.findall(r"file__bytes_read\.sum +Kbyte +3 \(1; 2\)\n", said)) == len(PHASES)


@pytest.mark.parametrize("kind", ["per-kernel", "per-gpu", "per-nvtx"])
def test_summaries(path: Path, kind: str) -> None:
    said = ncu.ncu(path, "--print-summary", kind)
    assert all(each in said for each in NAMES)
    assert "link__time_duration.sum" in said


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        (("--nvtx-include", "pylink@link/"), NAMES),
        (("--nvtx-include", "pylink@link/merge]"), ["merge(a.cubin)"]),
        (("--nvtx-include", "placed"), ["layout(a.cubin)", "relocate(a.cubin)"]),
        (("--nvtx-exclude", "link/merge/"), [each for each in NAMES if "merge" not in each]),
        (("--kernel-name", "merge"), ["merge(a.cubin)"]),
        (("--kernel-id", ":::2"), ["merge(a.cubin)"]),
        (("--launch-skip", "2", "--launch-count", "1"), ["layout(a.cubin)"]),
    ],
)
def test_import_filters(path: Path, options: tuple[str, ...], kept: list[str]) -> None:
    rows = columns(ncu.ncu_csv(path, "--page", "raw", *options))[1:]
    assert [each["Kernel Name"] for each in rows] == kept


def test_metrics_can_be_chosen(path: Path) -> None:
    (names, *_) = ncu.ncu_csv(path, "--page", "raw", "--metrics", "regex:link__time.*")
    assert [each for each in names if "__" in each] == [
        "link__time_duration.sum",
        "link__time_share.pct",
    ]


def test_ranges_can_rename_actions(path: Path) -> None:
    rows = columns(ncu.ncu_csv(path, "--page", "raw", "--print-nvtx-rename", "kernel"))[1:]
    renamed = [f"{phase}/{name}" for phase, name in zip(PHASES, NAMES, strict=True)]
    assert [each["Kernel Name"] for each in rows] == [*renamed, "range"]


def test_source_page_has_instructions_and_our_columns(path: Path) -> None:
    heading, names, *rows = ncu.ncu_csv(path, "--page", "source", "--kernel-name", "relocate")
    assert heading[0] == "Kernel Name"
    assert names == ["Address", "Source", "Relocations", "Bytes Patched"]
    assert len(rows) > 8
    assert all(each[1].strip() and "???" not in each[1] for each in rows)
    counted = {each[0]: each[2:] for each in rows if each[2] != "0"}
    assert list(counted.values()) == [["1", "8"], ["2", "16"]]


@oracle.needs_oracle
def test_source_page_goes_down_to_the_lines(tmp_path: Path) -> None:
    text = "__global__ void k(int *p) {\n  p[threadIdx.x] = 7;\n  p[1] += 3;\n}\n"
    cubin = oracle.link([oracle.compile(text, "86", ["-lineinfo"])], "86").image
    assert cubin is not None
    code = load_with_addresses(cubin)
    ((function, start),) = code.addresses.items()
    report = Report(Process(1, "host", "pylink"))
    action = Action("k", "k", function, source=report.add_source(code.source))
    add_display_metrics(action, 86, "sm_86")
    action.set("launch__function_pcs", start)
    action.set("reloc__applied_at", 3, instances={start: 1, start + 0x20: 2})
    action.sections.append(SOURCE)
    report.actions.append(action)
    place = IContext(report)[0][0].source_info(start)
    assert place is not None
    report.sources[0].source_files = SourceFiles([SourceFile(place.file_name(), text)])
    write_report(report, tmp_path / "lines.ncu-rep")
    said = ncu.ncu(
        tmp_path / "lines.ncu-rep",
        *("--page", "source", "--kernel-name", "k", "--print-source", "cuda,sass"),
    )
    lines = [line.split() for line in said.splitlines()]
    assert ["1", "__global__", "void", "k(int", "*p)", "{", "1"] in lines
    assert ["2", "p[threadIdx.x]", "=", "7;", "2"] in lines
    assert any(line[:1] == [hex(start)] for line in lines)


@oracle.needs_oracle
def test_source_page_of_a_link_has_its_counts(tmp_path: Path) -> None:
    text = (
        "extern __constant__ int c[4];\n__global__ void k(int *p) { p[0] = c[1]; p[1] = c[2]; }\n"
    )
    inputs = [oracle.compile(text, "86"), oracle.compile("__constant__ int c[4];", "86")]
    path = tmp_path / "link.ncu-rep"
    pylink.link(inputs, arch="sm_86", profile=path, set=["full"])
    relocate = next(each for each in read_report(path).actions if each.function_name == "relocate")
    applied, patched = (
        relocate.metrics[name].by_id() for name in ("reloc__inst_patched", "reloc__bytes_patched")
    )
    assert len(applied) > 1
    _, names, *rows = ncu.ncu_csv(path, "--page", "source", "--kernel-name", "relocate")
    assert names == ["Address", "Source", "Relocations Applied", "Bytes Patched"]
    shown = {int(row[0], 16): row[2:] for row in rows if row[2:] != ["0", "0"]}
    assert shown == {at: [str(count), str(patched[at])] for at, count in applied.items()}


def test_what_rules_say_of_a_range_disturbs_nothing(tmp_path: Path) -> None:
    report = Report(Process(1, "host", "pylink"))
    whole_link = Action(scope=Scope.RANGE, sections=[SOURCE])
    add_display_metrics(whole_link, 86, "sm_86")
    result = RuleResult("R", "A rule")
    result.add(RuleItem(RuleMessage("only pylink shows this", MessageType.WARNING)))
    whole_link.rule_results.append(result)
    report.actions.append(whole_link)
    write_report(report, tmp_path / "range.ncu-rep")
    shown = ncu.ncu(tmp_path / "range.ncu-rep")
    assert "  range, " in shown
    assert "only pylink" not in shown


@pytest.mark.parametrize("sm", [30, 75, 88, 100, 121])
def test_no_target_is_unknown_to_the_tool(tmp_path: Path, sm: int) -> None:
    report = Report(Process(1, "host", "pylink"))
    action = Action("read", "read", "read", sections=[SOURCE])
    add_display_metrics(action, sm, f"sm_{sm}")
    report.actions.append(action)
    write_report(report, tmp_path / "new.ncu-rep")
    assert "compute capability" not in ncu.ncu(tmp_path / "new.ncu-rep")


def test_two_processes(tmp_path: Path) -> None:
    report = Report(Process(2, "host", "second"))
    for number, process in enumerate([None, Process(1, "host", "first"), None]):
        action = Action(f"a{number}", f"a{number}", f"a{number}", process=process)
        action.set("m", number)
        report.actions.append(action)
    write_report(report, tmp_path / "two.ncu-rep")
    rows = columns(ncu.ncu_csv(tmp_path / "two.ncu-rep", "--page", "raw"))[1:]
    assert [(each["Process Name"], each["m"]) for each in rows] == [
        ("first", "1"),
        ("second", "0"),
        ("second", "2"),
    ]


def test_many_actions(tmp_path: Path) -> None:
    report = Report(Process(1, "host", "pylink"))
    for number in range(800):
        action = Action(f"a{number}", f"a{number}", f"a{number}", thread_id=1)
        for each in range(30):
            action.set(f"link__value{each}.sum", number * each)
        action.nvtx = NvtxState()
        action.nvtx.push(1, ["link"])
        report.actions.append(action)
    write_report(report, tmp_path / "many.ncu-rep")
    rows = columns(ncu.ncu_csv(tmp_path / "many.ncu-rep", "--page", "raw"))[1:]
    assert [each["link__value7.sum"] for each in rows[::100]] == [
        str(number * 7) for number in range(0, 800, 100)
    ]


def test_report_without_actions(tmp_path: Path) -> None:
    write_report(Report(), tmp_path / "empty.ncu-rep")
    assert "No results are found" in ncu.ncu(tmp_path / "empty.ncu-rep")
