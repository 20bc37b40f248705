"""Rules: loading, the life of one, what they may say, and Nsight Compute's own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from helpers import ncu
from helpers.report_files import of_section, rule_text

from pylink.report.file import parse_report, read_report, report_bytes
from pylink.report.model import Action, MessageType, Report, RuleResult, Scope, Section, Severity
from pylink.report.rules.evaluation import apply_rules
from pylink.report.rules.rulefiles import LoadedRules, load_rules

BASIC = """\
import NvRules

def get_identifier():
  return "Basic"

def apply(handle):
  ctx = NvRules.get_context(handle)
  action = ctx.range_by_idx(0).action_by_idx(0)
  major = action.metric_by_name("major").as_uint64()
  ctx.frontend().message("Running on " + str(major))
"""


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)


def report(*sections: str) -> Report:
    action = Action("read", demangled_name="read")
    action.set("major", 8)
    action.sections = [Section(name, name) for name in sections]
    return Report(actions=[action])


def results(folder: Path, made: Report | None = None, *, newer: bool = False) -> list[RuleResult]:
    made = made or report()
    loaded = load_rules([folder])
    assert loaded.errors == []
    apply_rules(made, loaded.rules, newer=newer)
    return made.actions[0].rule_results


def said(result: RuleResult) -> list[tuple[int, str]]:
    return [(message.type, message.message) for message, _ in result.messages()]


def test_the_smallest_rule(tmp_path: Path) -> None:
    write(tmp_path, "basic.py", BASIC)
    (result,) = results(tmp_path)
    assert (result.identifier, result.display_name) == ("Basic", "Basic")
    assert said(result) == [(MessageType.NONE, "Running on 8")]


def test_what_a_rule_may_say(tmp_path: Path) -> None:
    body = """\
first = fe.message(NvRules.IFrontend.MsgType_MSG_WARNING, "slow", "Title")
assert fe.focus_metric(first, "major", 8, NvRules.IFrontend.Severity_SEVERITY_HIGH, "info")
assert not fe.focus_metric(7, "major", 8)
assert fe.speedup(first, NvRules.IFrontend.SpeedupType_GLOBAL, 12.34)
fe.source_marker("here", 0x80, NvRules.MarkerKind.SASS)
fe.source_marker("there", 3, NvRules.IFrontend.MarkerKind_SOURCE, "a.cu")
table = fe.message("table:")
fe.generate_table(table, ["name", "size"], [["a", 1], ["bb", 22]])
context.controller().propose_rule("Other")"""
    write(tmp_path, "r.py", rule_text(body))
    (result,) = results(tmp_path)
    assert said(result) == [
        (MessageType.WARNING, "slow Estimated speedup: 12.3% of the link's time."),
        (MessageType.NONE, "0x80: here"),
        (MessageType.NONE, "a.cu:3: there"),
        (MessageType.NONE, "table:\nname  size\na     1\nbb    22"),
    ]
    message, focus = next(result.messages())
    assert (message.id, message.name) == (1, "Title")
    assert [(each.metric_name, each.metric_value, each.severity) for each in focus] == [
        ("major", 8.0, Severity.HIGH),
        ("link__estimated_speedup.pct", 12.34, Severity.HIGH),
    ]
    proposal = result.items()[-1].proposal
    assert proposal is not None
    assert proposal.identifier == "Other"


def test_newer_message_types_are_stored_on_request_only(tmp_path: Path) -> None:
    write(tmp_path, "r.py", rule_text("fe.message(NvRules.MsgType.OPTIMIZATION, 'text')"))
    assert said(results(tmp_path)[0]) == [(MessageType.WARNING, "text")]
    assert said(results(tmp_path, newer=True)[0]) == [(MessageType.OPTIMIZATION, "text")]


def test_charts_are_loaded_from_beside_the_rule(tmp_path: Path) -> None:
    write(tmp_path, "c.chart", 'Table { Columns: 1 Metrics { Name: "major" } }')
    write(tmp_path, "r.py", rule_text("fe.load_chart_from_file('c.chart')"))
    item = results(tmp_path)[0].items()[0]
    assert item.table is not None
    assert item.table.metrics[0].name == "major"
    write(tmp_path, "c.chart", "Table { Bogus: 1 }")
    (_, text), *_ = said(results(tmp_path)[0])
    assert "c.chart: Error: Line=1 Column=8 Message type" in text


def test_rules_of_a_section_need_it(tmp_path: Path) -> None:
    write(tmp_path, "r.py", rule_text("fe.message('x')", extra=of_section("Wanted")))
    assert results(tmp_path) == []
    (result,) = results(tmp_path, report("Wanted"))
    assert result.section_identifier == "Wanted"


def test_rules_of_the_whole_link_are_kept_in_the_file(tmp_path: Path) -> None:
    write(tmp_path, "r.py", rule_text("fe.message('all of it')"))
    whole = Report(actions=[Action(scope=Scope.RANGE)])
    whole.actions[0].set("major", 8)
    apply_rules(whole, load_rules([tmp_path]).rules)
    (action,) = parse_report(report_bytes(whole), "whole").actions
    assert [text for _, text in said(action.rule_results[0])] == ["all of it"]


def test_missing_metrics_and_rules_are_an_error_message(tmp_path: Path) -> None:
    extra = (
        "def evaluate(handle):\n"
        "    NvRules.require_metrics(handle, ['major', 'gone'])\n"
        "    NvRules.require_rules(handle, ['Rule', 'Nobody'])\n"
    )
    write(tmp_path, "r.py", rule_text("fe.message('never')", extra=extra))
    assert said(results(tmp_path)[0]) == [
        (
            MessageType.ERROR,
            "This rule needs the metrics gone, which were not collected and needs the rules "
            "Nobody, which were not found.",
        )
    ]


def test_a_speedup_of_a_part_is_told_apart_from_one_of_the_link(tmp_path: Path) -> None:
    body = """\
for kind in (NvRules.IFrontend.SpeedupType_LOCAL, NvRules.IFrontend.SpeedupType_UNKNOWN):
    assert fe.speedup(fe.message("slow."), kind, 5)
assert not fe.speedup(9, NvRules.IFrontend.SpeedupType_GLOBAL, 5)"""
    write(tmp_path, "r.py", rule_text(body))
    text = "slow. Estimated speedup: 5% of this part alone."
    assert said(results(tmp_path)[0]) == [(MessageType.NONE, text)] * 2


def test_tables_have_a_title_and_equal_rows(tmp_path: Path) -> None:
    body = """\
table = fe.message("table:")
assert fe.generate_table(table, ["n"], [[1]], {"title": "Numbers"})
assert not fe.generate_table(9, ["n"], [[1]])
short, long, mixed = [[1]], [[1, 2, 3]], [[1, 2], ["a", 2]]
for rows, error in ((short, ValueError), (long, ValueError), (mixed, TypeError)):
    try:
        fe.generate_table(table, ["a", "b"], rows)
    except error as refusal:
        fe.message(str(refusal))"""
    write(tmp_path, "r.py", rule_text(body))
    assert [text for _, text in said(results(tmp_path)[0])] == [
        "table:\nNumbers\nn\n1",
        "a row of 1 cells under 2 headings",
        "a row of 3 cells under 2 headings",
        "a column of text and numbers: (1, 'a')",
    ]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("1 / 0", "r.py failed: line 8: ZeroDivisionError: division by zero"),
        ("import sys; sys.exit(3)", "r.py failed: line 8: SystemExit: 3"),
        (
            "NvRules.raise_exception(handle, 'no data')",
            "r.py failed: line 8: RuleException: no data",
        ),
        (
            "context.range_by_idx(0).action_by_idx(0)['gone']",
            "r.py failed: line 8: KeyError: \"no metric named 'gone'\"",
        ),
        (
            "fe.message(1, 2)",
            "r.py failed: line 8: TypeError: message takes an optional type, a text and a name",
        ),
    ],
)
def test_a_rule_that_fails_stops_nothing(tmp_path: Path, body: str, text: str) -> None:
    write(tmp_path, "r.py", rule_text(body, "Bad"))
    write(tmp_path, "z.py", rule_text("fe.message('fine')", "Good"))
    bad, good = results(tmp_path)
    assert said(bad) == [(MessageType.ERROR, text)]
    assert said(good) == [(MessageType.NONE, "fine")]


def test_parents_run_first_and_send_numbers(tmp_path: Path) -> None:
    extra = "def get_parent_rules_identifiers():\n    return ['Zed']"
    body = """\
received = [fe.receive_dict_from_parent(name) for name in ("Zed", "A")]
fe.message(str(received))"""
    write(tmp_path, "a.py", rule_text(body, "A", extra))
    write(tmp_path, "z.py", rule_text("fe.send_dict_to_children({'x': 2})", "Zed"))
    parent, child = results(tmp_path)
    assert parent.identifier == "Zed"
    assert parent.body is None
    assert said(child) == [(MessageType.NONE, "[{'x': 2.0}, {}]")]


def test_rules_that_are_each_others_parents_still_run(tmp_path: Path) -> None:
    for giver, other in (("A", "B"), ("B", "A")):
        extra = f"def get_parent_rules_identifiers():\n    return ['{other}']"
        write(tmp_path, f"{giver}.py", rule_text("fe.message('ran')", giver, extra))
    assert [said(result) for result in results(tmp_path)] == [[(0, "ran")], [(0, "ran")]]


def test_metrics_that_rules_add_are_stored(tmp_path: Path) -> None:
    body = """\
action = context.range_by_idx(0).action_by_idx(0)
action.add_double_metric("mine", NvRules.IMetric.ValueKind_DOUBLE, 2.5)"""
    write(tmp_path, "r.py", rule_text(body))
    made = report()
    results(tmp_path, made)
    assert made.actions[0].value("mine") == 2.5


def load(folder: Path) -> LoadedRules:
    return load_rules([folder])


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("def broken(:\n", "line 1: invalid syntax"),
        ("import nothing_of_this_name\n", "line 1: ModuleNotFoundError: No module named"),
        (
            "def get_identifier():\n    return 5\ndef apply(handle):\n    pass\n",
            "get_identifier returns a int, not a string",
        ),
        (
            "def get_identifier():\n    return ''\ndef apply(handle):\n    pass\n",
            "get_identifier returns an empty identifier",
        ),
        (
            "def get_identifier():\n    1 / 0\ndef apply(handle):\n    pass\n",
            "line 2: ZeroDivisionError",
        ),
    ],
)
def test_files_that_do_not_load_are_listed(tmp_path: Path, text: str, error: str) -> None:
    write(tmp_path, "bad.py", text)
    write(tmp_path, "good.py", BASIC)
    loaded = load(tmp_path)
    assert [rule.identifier for rule in loaded.rules] == ["Basic"]
    assert len(loaded.errors) == 1
    assert error in loaded.errors[0][1]
    assert loaded.problems()[0].count("bad.py") == 1


def test_a_helper_that_does_not_load_is_named(tmp_path: Path) -> None:
    write(tmp_path, "rule_helper.py", "\n\ndef broken(:\n")
    write(tmp_path, "r.py", "import rule_helper\n" + BASIC)
    reasons = {file.name: reason for file, reason in load(tmp_path).errors}
    assert reasons["rule_helper.py"] == "line 3: invalid syntax"
    assert reasons["r.py"] == "line 1: SyntaxError: invalid syntax (rule_helper.py, line 3)"


@pytest.mark.parametrize("value", [3, 4])
def test_helpers_are_no_rules_and_nothing_stays_behind(tmp_path: Path, value: int) -> None:
    write(tmp_path, "rule_helper.py", f"VALUE = {value}\n")
    write(
        tmp_path, "r.py", "import rule_helper\n" + rule_text("fe.message(str(rule_helper.VALUE))")
    )
    before = list(sys.path)
    assert said(results(tmp_path)[0]) == [(MessageType.NONE, str(value))]
    assert [rule.identifier for rule in load(tmp_path).rules] == ["Rule"]
    assert sys.path == before
    assert not {"NvRules", "rule_helper"} & set(sys.modules)


def test_of_equal_identifiers_the_last_file_counts(tmp_path: Path) -> None:
    write(tmp_path, "a.py", rule_text("fe.message('a')", "Same"))
    write(tmp_path, "b.py", rule_text("fe.message('b')", "Same"))
    assert said(results(tmp_path)[0]) == [(MessageType.NONE, "b")]
    assert "has the same identifier" in load(tmp_path).warnings[0]


def test_a_rule_of_the_user_replaces_one_of_the_same_file_in_silence(tmp_path: Path) -> None:
    for place in ("stock", "own"):
        (tmp_path / place).mkdir()
        write(tmp_path / place, "a.py", rule_text("fe.message('a')", "Same"))
    loaded = load_rules([tmp_path / "stock", tmp_path / "own"])
    assert [rule.file for rule in loaded.rules] == [tmp_path / "own" / "a.py"]
    assert loaded.warnings == []


@ncu.needs_sections
@ncu.needs_samples
@pytest.mark.parametrize("sample", ncu.SAMPLES, ids=lambda sample: sample.stem)
def test_rules_of_nsight_compute_say_what_the_real_report_holds(sample: Path) -> None:
    """All but two, whose texts changed between the report's release and that of the rules."""
    made = read_report(sample)
    stored = {result.identifier: result for result in made.actions[0].rule_results}
    loaded = load_rules([ncu.SECTIONS])
    assert loaded.errors == []
    assert len(loaded.rules) == 16
    apply_rules(made, loaded.rules)
    found = {result.identifier: result for result in made.actions[0].rule_results}
    assert set(found) == set(stored)
    differ = {
        name
        for name, result in found.items()
        if list(result.messages()) != list(stored[name].messages())
    }
    assert len(differ) <= 2, differ
    failed = [text for result in found.values() for kind, text in said(result) if kind == 3]
    assert failed == []
