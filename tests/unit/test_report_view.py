"""`pylink report` on a terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers.report_link import link_report
from helpers.report_phases import phase, report, show, write_file

from pylink.report.file import write_report
from pylink.report.model import (
    Action,
    Body,
    BodyItem,
    Metrics,
    Report,
    RuleItem,
    RuleMessage,
    RuleResult,
    Scope,
    Section,
    SectionMetric,
    SortDirection,
    SortKey,
    Table,
)
from pylink.report.source import lines
from pylink.report.view import numbers
from pylink.report.view.blocks import largest
from pylink.report.view.markup import strip_markup
from pylink.report.view.overview import advice, session_rows, summary
from pylink.report.view.pages import action_pages
from pylink.report.view.terminal import bar, short


@pytest.fixture
def file(tmp_path: Path) -> str:
    return write_file(tmp_path)


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0, "byte", "0 B"),
        (999, "byte", "999 B"),
        (13_840, "byte", "13.8 kB"),
        (86_000_000, "byte", "86.0 MB"),
        (1_500_000, "nsecond", "1.50 ms"),
        (12_345_678_901, "nsecond", "12.35 s"),
        (46.543, "%", "46.54%"),
        (0.00034, "", "0.00034"),
        (1234567, "", "1,234,567"),
        (2.5e9, "byte/second", "2.50 GB/s"),
        (1500, "byte/cycle", "1.50 kB/cycle"),
        (40, "register/thread", "40 register/thread"),
        (None, "byte", "N/A"),
        ("sm_80", "", "sm_80"),
        (float("nan"), "", "nan"),
        (-1500, "byte", "-1.5 kB"),
    ],
)
def test_units_as_people_read_them(value: float | str | None, unit: str, shown: str) -> None:
    assert numbers.format_value(value, unit) == shown


def test_bars() -> None:
    assert [len(bar(value, 100)) for value in (0, 0.1, 50, 100)] == [0, 1, 16, 32]
    pairs = tuple((f"f{at}", at) for at in range(1, 15))
    bars, rest = largest(pairs, "byte")
    assert bars[0] == ("f14", 14.0)
    assert len(bars) == 10
    assert rest == (
        "4 more with 10 B together (10%); of all 14, one in ten has at most 2 B, half 7 B, "
        "nine in ten 13 B"
    )
    assert largest(pairs[:10], "byte")[1] == ""


def test_markup() -> None:
    text = "See @section:A:that@, @url:this:https://x.y/z@, @sass:0x80:here@, @source:a.cu:3:there@"
    assert strip_markup(text) == "See that, this (https://x.y/z), here (0x80), there (a.cu:3)"
    assert strip_markup("a@b and 5 @ 3") == "a@b and 5 @ 3"


def test_one_screen_comes_first(capfd: pytest.CaptureFixture[str], file: str) -> None:
    lines = [" ".join(line.split()) for line in show(capfd, file).splitlines()]
    assert "Phase Processor Wall Share of wall" in lines
    assert f"read N/A 1.50 ms 75.0% {bar(3, 4)}" in lines
    assert "--all shows every action and section" in lines
    assert "[0] read" not in lines


def test_shares_of_phases_are_of_the_whole_link(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Writing profiles and maps takes time between phases, which belongs to none of them."""
    made = report()
    made.actions.append(Action(scope=Scope.RANGE))
    made.actions[-1].set("link__time_duration.sum", 3_000_000)
    write_report(made, tmp_path / "whole.ncu-rep")
    shown = " ".join(show(capfd, str(tmp_path / "whole.ncu-rep")).split())
    assert "read N/A 1.50 ms 50.0%" in shown


def test_details_on_a_terminal(capfd: pytest.CaptureFixture[str], file: str) -> None:
    out = show(capfd, file, "--all")
    assert "\x1b" not in out  # piped
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "[0] read" in lines
    assert "Time 1.50 ms" in lines
    assert "Gone N/A" in lines
    assert f"a.cubin {bar(4000, 4000)} 4.0 kB" in lines
    assert "Target sm_100" in lines
    assert "WRN Title: Use <fewer> inputs." in lines


def test_advice_and_the_whole_link_come_first(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    made = report()
    made.actions.append(Action(scope=Scope.RANGE))
    made.actions[-1].set("link__time_duration.sum", 2_000_000)
    write_report(made, tmp_path / "whole.ncu-rep")
    out = show(capfd, str(tmp_path / "whole.ncu-rep"), "--all")
    headings = [line for line in out.splitlines() if line.startswith(("What", "["))]
    assert headings == ["What to do", "[2] whole link", "[0] read", "[1] merge"]
    assert "WRN  read: Use <fewer> inputs." in out


def test_a_link_without_faults_is_told_so(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    made = report()
    made.actions[0].rule_results = [RuleResult("R", "A rule")]
    made.actions[1].rule_results = []
    write_report(made, tmp_path / "good.ncu-rep")
    out = show(capfd, str(tmp_path / "good.ncu-rep"))
    assert "No rule found anything to change." in out
    assert "What to do" not in out


def test_of_many_comparisons_the_longest_are_shown(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path, page = tmp_path / "pairs.ncu-rep", tmp_path / "page.html"
    pairs = [phase("dedup", 1000 + number) for number in range(9)]
    write_report(Report(actions=[phase("read", 1), *pairs]), path)
    out = show(capfd, str(path), "--all")
    assert re.findall(r"^\[(\d)\]", out, re.MULTILINE) == ["0", "6", "7", "8", "9"]
    assert "5 shorter actions are omitted" in out
    assert len(re.findall(r"^\[", show(capfd, str(path), "--instances"), re.MULTILINE)) == 10
    show(capfd, str(path), "--html", str(page))
    assert "5 shorter actions are omitted." in page.read_text()


def test_long_names_leave_room_for_their_bars() -> None:
    assert short("a" * 44) == "a" * 44
    assert short("/long" * 20 + "/name.cubin").endswith("/long/name.cubin")
    assert short("void kernel<int>" * 9).startswith("void kernel<int>")
    assert {len(short("/x" * 99)), len(short("x" * 99))} == {44}


def test_instructions_with_what_was_counted_there(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    made = link_report()
    write_report(made, tmp_path / "code.ncu-rep")
    out = show(capfd, str(tmp_path / "code.ncu-rep"), "--page", "source")
    heading, *rows = [line.split() for line in out[out.index("Address") :].splitlines() if line]
    assert heading[:3] == ["Address", "Instruction", "Line"]
    assert " ".join(heading[3:]) == "Relocations Bytes Patched"
    assert [row[-3:] for row in rows] == [["2", "16", "B"], ["1", "8", "B"]]


def test_code_of_several_actions_is_disassembled_once(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def disassemble(code: bytes, sm: int, start: int) -> dict[int, str]:
        asked.append((len(code), sm))
        return {start: "NOP"}

    monkeypatch.setattr(lines, "disassemble", disassemble)
    made = link_report()
    relocate = made.actions[3]
    made.actions.append(relocate)
    write_report(made, tmp_path / "code.ncu-rep")
    out = show(capfd, str(tmp_path / "code.ncu-rep"), "--page", "source")
    assert out.count("NOP") == 2
    assert len(asked) == 1


def test_source_counters_come_as_sections_name_them_and_the_highest_first(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    action = Action("relocate")
    for name in ("a__count", "b__count", "hidden__count"):
        action.set(name, 1, {16 * at: at for at in range(30)})
    named = [SectionMetric(name, label) for name, label in (("b__count", "B"), ("a__count", "A"))]
    metrics = Metrics([*named, SectionMetric("hidden__count", "")])
    action.sections = [Section("S", "S", metrics=metrics)]
    path = tmp_path / "code.ncu-rep"
    write_report(Report(actions=[action]), path)
    for options, rows in ((), 20), (("--instances",), 30):
        out = show(capfd, str(path), "--page", "source", *options)
        heading, *lines = [line.split() for line in out[out.index("Address") :].splitlines()]
        assert heading == ["Address", "Instruction", "Line", "B", "A"]
        shown = [line for line in lines if line and line[0].startswith("0x")]
        assert shown == [[hex(16 * at), str(at), str(at)] for at in range(29, 29 - rows, -1)]
        assert ("10 more instructions; --instances lists them" in out) == (not options)


def test_numbers_that_are_no_addresses_are_not_on_the_source_page(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As reports of Nsight Compute have them: tables of occupancy, by block size."""
    made = link_report()
    relocate = made.actions[3]
    relocate.set("launch__occupancy_per_block_size", 1, dict.fromkeys(range(1, 65), 1))
    path = tmp_path / "code.ncu-rep"
    write_report(made, path)
    out = show(capfd, str(path), "--page", "source")
    assert re.findall("^0x[0-9a-f]+", out, re.MULTILINE) != []
    assert "0x1 " not in out
    assert "occupancy" not in out
    # Without the code, what sections name as source counters has addresses.
    unknown = Action("kernel")
    unknown.set("launch__occupancy_per_block_size", 1, {1: 1})
    write_report(Report(actions=[unknown]), path)
    assert "No counter of this report" in show(capfd, str(path), "--page", "source")


def test_headings_of_many_counters_stay_readable(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    action = Action("kernel")
    named = [SectionMetric(f"counter{number}__count", f"Counter{number}") for number in range(40)]
    for name in named:
        action.set(name.name, 1, {16: 1})
    action.sections = [Section("S", "S", metrics=Metrics(named))]
    path = tmp_path / "code.ncu-rep"
    write_report(Report(actions=[action]), path)
    out = show(capfd, str(path), "--page", "source")
    assert "Counter0 " in out
    (rest,) = re.findall(r"^([0-9]+) more counters", out, re.MULTILINE)
    assert len(re.findall(r"Counter[0-9]+\b", out)) == 40 - int(rest)


def test_a_report_without_source_counters_says_so(
    capfd: pytest.CaptureFixture[str], file: str
) -> None:
    assert "No counter of this report" in show(capfd, file, "--page", "source")


@pytest.mark.parametrize(
    ("key", "direction", "shown"),
    [
        (None, None, ["b", "c", "a"]),
        (SortKey.BY_LABEL, None, ["a", "b", "c"]),
        (SortKey.BY_LABEL, SortDirection.DESCENDING, ["c", "b", "a"]),
        (SortKey.BY_VALUE, SortDirection.ASCENDING, ["c", "a", "b"]),
        (SortKey.BY_VALUE, SortDirection.DESCENDING, ["b", "a", "c"]),
    ],
)
def test_tables_are_sorted_as_they_say(
    key: int | None, direction: int | None, shown: list[str]
) -> None:
    action = Action("read")
    for name, value in (("a", 2), ("b", 3), ("c", 1)):
        action.set(name, value)
    metrics = [SectionMetric(name, name) for name in "bca"]
    table = Table("T", metrics=metrics, sort_key=key, sort_direction=direction)
    action.sections = [Section("S", "S", body=[Body([BodyItem(table=table)])])]
    (page,) = action_pages(Report(actions=[action]))
    assert [row.label for row in page.sections[0].blocks[0].rows] == shown


def test_sections_come_by_their_order_and_those_without_last() -> None:
    action = Action("read")
    action.sections = [
        Section(name, name, order) for name, order in (("x", None), ("b", 9), ("a", 0))
    ]
    (page,) = action_pages(Report(actions=[action]))
    assert [section.identifier for section in page.sections] == ["a", "b", "x"]


def test_advice_begins_with_what_is_worth_most() -> None:
    actions = [phase(name, 5) for name in ("read", "merge", "write")]
    for action, percent in zip(actions, (3.0, 40.0, 12.0), strict=True):
        ((message, focus),) = action.rule_results[0].messages()
        focus[0].metric_value = percent
        message.message = f"Look at {action.function_name}."
    found = advice(action_pages(Report(actions=actions)))
    assert [name for name, _ in found] == ["merge", "write", "read"]


def test_one_cause_is_one_advice() -> None:
    pages = action_pages(Report(actions=[phase(name, 5) for name in ("read", "merge")]))
    assert [name for name, _ in advice(pages)] == ["read"]


def test_a_link_in_a_sentence() -> None:
    whole_link = Action(scope=Scope.RANGE)
    whole_link.set("link__time_duration.sum", 2_000_000)
    made = report()
    made.actions.append(whole_link)
    sentence = "The link took 2 ms. Its longest phase was read with 1.50 ms."
    assert summary(made) == sentence
    whole_link.set("file__opened.sum", 2)
    whole_link.set("file__bytes_read.sum", 5_000)
    whole_link.set("link__time_per_copy_floor.ratio", 3.5)
    assert summary(made) == sentence.replace(
        "ms. Its", "ms for 2 files of 5.0 kB, 3.50 times the time of reading and writing. Its"
    )
    assert summary(report()) == ""


def test_a_long_command_line_is_cut() -> None:
    made = report()
    for words, shown in (("x" * 160, "x" * 160), ("x" * 161, "x" * 160 + "...")):
        made.session.profiler_cmdline = words
        assert dict(session_rows(made, "f"))["Command line"] == shown


def test_sections_that_extend_another_are_shown_in_it() -> None:
    action = phase("read", 5)
    table = Table("Settings", columns=1, metrics=[SectionMetric("link__target_arch", "Target")])
    more = Section("More", "More", extends="LinkInput", body=[Body([BodyItem(table=table)])])
    action.sections.append(more)
    ((section,),) = [page.sections for page in action_pages(Report(actions=[action]))]
    assert section.identifier == "LinkInput"
    assert section.blocks[-1].title == "More: Settings"


def test_rules_of_sections_that_extend_another_are_shown_once() -> None:
    action = phase("read", 5)
    action.sections.append(Section("More", "More", extends="LinkInput"))
    result = RuleResult("R", "A rule", section_identifier="More")
    result.add(RuleItem(RuleMessage("Look at this.")))
    result.add(RuleItem(table=Table("Rows", metrics=[SectionMetric("link__target_arch")])))
    action.rule_results.append(result)
    (page,) = action_pages(Report(actions=[action]))
    (section,) = page.sections
    assert [message.text for message in page.all_messages()].count("Look at this.") == 1
    assert section.blocks[-1].title == "More: Rows"
    assert (page.messages, page.blocks) == ([], [])


def test_color_on_request(capfd: pytest.CaptureFixture[str], file: str) -> None:
    assert "\x1b[" in show(capfd, file, "--color", "always")
    assert "\x1b[" not in show(capfd, file, "--color", "never")


def test_other_pages(capfd: pytest.CaptureFixture[str], file: str) -> None:
    raw = show(capfd, file, "--page", "raw", "--instances")
    assert "link__target_arch" in raw
    assert "b.cubin" in raw
    session = show(capfd, file, "--page", "session")
    assert "pylink (1234)" in session
    assert "read" not in session
