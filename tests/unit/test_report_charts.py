"""Tables and charts of sections and rules: all of what they hold is shown, with planted numbers."""

from __future__ import annotations

import pytest

from pylink.report.model import (
    AchievedValue,
    Action,
    Body,
    BodyItem,
    CyclesPerSecond,
    FocusMetric,
    HistogramAxis,
    HistogramChart,
    LineChart,
    MetricList,
    Order,
    Report,
    Roofline,
    RooflineChart,
    RooflineOptions,
    RooflineValue,
    RuleItem,
    RuleMessage,
    RuleResult,
    Section,
    SectionMetric,
    SourceMetricTable,
    Table,
    ValueAxis,
)
from pylink.report.view.blocks import Block
from pylink.report.view.html import page
from pylink.report.view.pages import action_pages, focus_text
from pylink.report.view.terminal import console, show_details


def blocks(action: Action, *items: BodyItem) -> list[Block]:
    """What a section of these items shows of the action."""
    action.sections = [Section("S", "S", body=[Body(list(items))])]
    (shown,) = action_pages(Report(actions=[action]))
    return shown.sections[0].blocks


def action(**metrics: object) -> Action:
    made = Action("read", "read", "read")
    for name, value in metrics.items():
        if isinstance(value, dict):
            made.set(name, sum(value.values()), value)
        else:
            made.set(name, value)  # type: ignore[arg-type] # numbers all
    return made


def terminal(capfd: pytest.CaptureFixture[str], action: Action) -> str:
    show_details(console(color=False), Report(actions=[action]))
    return capfd.readouterr().out


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        (None, ["Bytes of the input files", "a__other"]),
        ("Bytes", ["Bytes (Bytes of the input files)", "Bytes (a__other)"]),
        ("{UNIT}: {COMPOUND_NAME}", ["FILE: Bytes Read", "A: Other"]),
    ],
)
def test_what_a_pattern_stands_for_keeps_its_label(label: str | None, shown: list[str]) -> None:
    drawn = action(**{"file__bytes_read.sum": 3, "a__other": 4})
    drawn.set("regex:.*", "file__bytes_read.sum,a__other")
    (block,) = blocks(drawn, BodyItem(table=Table("T", metrics=[SectionMetric("regex:.*", label)])))
    assert [row.label for row in block.rows] == shown


@pytest.mark.parametrize(
    ("order", "lines"),
    [
        (Order.ROW_MAJOR, [["1", "2", "3"], ["4", "5"]]),
        (Order.COLUMN_MAJOR, [["1", "3", "5"], ["2", "4"]]),
    ],
)
def test_tables_have_their_columns_and_order(
    capfd: pytest.CaptureFixture[str], order: Order, lines: list[list[str]]
) -> None:
    drawn = action(**{f"a__m{at}": at for at in range(1, 6)})
    metrics = [SectionMetric(f"a__m{at}", f"m{at}") for at in range(1, 6)]
    (block,) = blocks(drawn, BodyItem(table=Table("T", None, 3, order, metrics)))
    assert [[row.value_text for row in line] for line in block.cells(9)] == lines
    said = [line.split()[1::2] for line in terminal(capfd, drawn).splitlines() if " m" in line]
    assert said == lines
    html = page([("r", Report(actions=[drawn]))], [])
    cells = [line for line in html.splitlines() if line.startswith("<tr>") and ">m1<" in line]
    assert cells[0].count("<td") == 6


def test_cells_without_a_label_are_empty() -> None:
    metrics = [SectionMetric("a__x", "x"), SectionMetric("a__x", ""), SectionMetric("", "y")]
    (block,) = blocks(action(a__x=1), BodyItem(table=Table("T", columns=3, metrics=metrics)))
    assert [(row.label, row.value_text) for row in block.rows] == [("x", "1"), ("", ""), ("", "")]


def test_a_histogram_has_the_bins_of_the_window() -> None:
    # As release 2022.3 draws it: a bar per bin of what the values belong to, with their sum.
    drawn = action(t__by_depth={1: 5, 2: 7, 3: 1, 10: 4, 20: 3, 40: 9})
    chart = HistogramChart("H", HistogramAxis("Depth", 3), metric=SectionMetric("t__by_depth"))
    (block,) = blocks(drawn, BodyItem(histogram_chart=chart))
    assert [value for _, value, _ in block.bars[0].bars] == [17, 3, 9]
    assert block.axes[0] == "Depth"


def test_a_histogram_of_named_parts_is_of_their_values() -> None:
    sizes = {"a": 100, "b": 110, "c": 120, "d": 300}
    chart = HistogramChart(
        "H", HistogramAxis("Size", 2), metric=SectionMetric("file__bytes_read.sum")
    )
    drawn = action(**{"file__bytes_read.sum": sizes})
    (block,) = blocks(drawn, BodyItem(histogram_chart=chart))
    assert block.bars[0].bars == (("100 B to 200 B", 3, "count"), ("200 B to 300 B", 1, "count"))


def test_a_line_goes_through_its_instances_in_order() -> None:
    drawn = action(t__curve={30: 9, 10: 4, 20: 6}, t__here=20)
    chart = LineChart(
        "L",
        ValueAxis("Threads"),
        ValueAxis("Warps"),
        [SectionMetric("t__curve", "warps")],
        MetricList([SectionMetric("t__here", "this one")]),
    )
    (block,) = blocks(drawn, BodyItem(line_chart=chart))
    assert [name for name, _, _ in block.bars[0].bars] == ["10", "20", "30"]
    assert block.plot is not None
    assert block.plot.lines == (("warps", ((10, 4), (20, 6), (30, 9))),)
    assert block.plot.walls == (("this one", 20),)
    html = page([("r", Report(actions=[drawn]))], [])
    assert "Warps against Threads" in html


def rate(per_cycle: str) -> RooflineValue:
    expression = CyclesPerSecond([SectionMetric(per_cycle)], SectionMetric("t__cycles"))
    return RooflineValue(value_cycles_per_second_expression=expression)


def test_a_roofline_says_how_near_the_roof_is(capfd: pytest.CaptureFixture[str]) -> None:
    # 1,000 operations and 100 bytes a second: the ridge is at 10 operations a byte. 25 of them with
    # 50 bytes are 0.5 a byte, where the roof is 50.
    drawn = action(t__cycles=10, t__peak=100, t__traffic=10, t__done=25, t__moved=50)
    chart = RooflineChart(
        "R",
        rooflines=[Roofline(rate("t__peak"), rate("t__traffic"), RooflineOptions("Peak"))],
        achieved_values=[
            AchievedValue(
                RooflineValue(metric=SectionMetric("t__done")),
                RooflineValue(constant=50.0),
                RooflineOptions("Here"),
            )
        ],
    )
    (block,) = blocks(drawn, BodyItem(roofline_chart=chart))
    assert [(row.label, row.value_text) for row in block.rows] == [
        ("Peak", "1 k from an intensity of 10 on"),
        ("Here", "25 at an intensity of 0.5, 50.0% of the roofs"),
    ]
    assert block.plot is not None
    ((_, points),) = block.plot.lines
    assert points[:2] == ((0.1, 10.0), (10.0, 1000.0))
    assert block.plot.points == (("Here", 0.5, 25.0),)
    assert "50.0% of the roofs" in terminal(capfd, drawn)
    assert "<svg" in page([("r", Report(actions=[drawn]))], [])


def test_source_tables_name_the_costliest_instructions() -> None:
    drawn = action(t__stalls={256: 5, 512: 50, 768: 7})
    chart = SourceMetricTable("Stalls", 2, [SectionMetric("t__stalls")])
    (block,) = blocks(drawn, BodyItem(source_metric_table=chart))
    assert [name for name, _, _ in block.bars[0].bars] == ["0x200", "0x300"]


@pytest.mark.parametrize(
    ("rows", "count", "shown", "more"),
    [(None, 5, 5, ""), (None, 7, 5, "2 more"), (12, 12, 12, ""), (12, 15, 12, "3 more")],
)
def test_source_tables_say_how_many_instructions_they_omit(
    rows: int | None, count: int, shown: int, more: str
) -> None:
    drawn = action(t__stalls={16 * number: number for number in range(1, count + 1)})
    chart = SourceMetricTable("Stalls", rows, [SectionMetric("t__stalls")])
    (block,) = blocks(drawn, BodyItem(source_metric_table=chart))
    assert len(block.bars[0].bars) == shown
    assert block.bars[0].rest.partition(" with ")[0] == more


@pytest.mark.parametrize("section", [None, "S"])
def test_what_a_rule_adds_is_shown(capfd: pytest.CaptureFixture[str], section: str | None) -> None:
    drawn = action(t__x=7)
    blocks(drawn, BodyItem(table=Table("T", metrics=[SectionMetric("t__x", "x")])))
    result = RuleResult("R", "A rule", section_identifier=section)
    item = RuleItem(RuleMessage("Look at this."))
    item.focus_metrics.append(FocusMetric(1, "t__x", 7.0, info="the largest"))
    result.add(item)
    result.add(RuleItem(table=Table("Of the rule", metrics=[SectionMetric("t__x", "seven")])))
    drawn.rule_results.append(result)
    said = terminal(capfd, drawn)
    for words in ("Look at this.", "t__x: 7 (the largest)", "Of the rule", "seven  7"):
        assert words in said
    html = page([("r", Report(actions=[drawn]))], [])
    for words in ("Look at this.", "t__x: 7 (the largest)", "Of the rule", "seven"):
        assert words in html


def test_focus_metrics_are_in_words() -> None:
    focus = FocusMetric(1, "file__cache_hit.pct", 12.5, info="< 90%")
    assert focus_text(focus) == (
        "Share of the input that was in the cache of the operating system: 12.50% (< 90%)"
    )
