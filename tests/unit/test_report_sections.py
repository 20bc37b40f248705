"""Section files: what loads, what is said of mistakes, and what sections add to a report."""

from __future__ import annotations

import random
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from helpers import ncu
from helpers.report_files import section_text

from pylink import __version__
from pylink.report.errors import ReportError
from pylink.report.model import Action, BodyItem, Report, Section
from pylink.report.rules.rulefiles import load_rules
from pylink.report.sections import directories, patterns
from pylink.report.sections.directories import DirectoryError, search_path
from pylink.report.sections.insertion import apply_sections
from pylink.report.sections.sectionfiles import load
from pylink.report.sections.text import SectionError, parse_section
from pylink.report.view.selection import with_metrics

EXAMPLE = """\
# A comment.
Identifier: "Sample"
DisplayName: "Sample Section"
Description: "Shows various metrics."
Order: 5
Sets { Identifier: "default" }
Header { Metrics { Label: "Bytes" Name: "file__bytes_read.sum" } }
MetricDefinitions {
  MetricDefinitions { Name: "derived__twice" Expression: "file__bytes_read.sum * 2" }
}
Body {
  Items { Table { Columns: 2 Order: ColumnMajor Metrics { Name: "regex:file__.*\\\\.sum" } } }
  Items { BarChart { CategoryAxis { Label: "Files" } Metrics { Name: "derived__twice" } } }
}
Metrics { Metrics { Name: "file__opened.sum" Groups: "files" CtrDomains: "wall" } }
"""


def parse(text: str) -> Section:
    return parse_section(text.encode(), "s.section")


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text)
    return path


def test_a_section_is_read_whole() -> None:
    section = parse(EXAMPLE)
    assert (section.identifier, section.display_name, section.order) == (
        "Sample",
        "Sample Section",
        5,
    )
    assert section.header is not None
    assert section.header.metrics[0].label == "Bytes"
    table, chart = section.items()
    assert table.table is not None
    assert (table.table.columns, table.table.order) == (2, 1)
    assert chart.bar_chart is not None
    assert section.metrics is not None
    assert section.metrics.metrics[0].ctr_domains == ["wall"]


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        ("", "Line=0 Column=0 Message missing required fields: Identifier, DisplayName"),
        (
            section_text("A", extra="Body { Items { Table { Label: 'x' } } }"),
            "Line=0 Column=0 Message missing required fields: Body[0].Items[0].Table.Columns",
        ),
        (
            section_text("A", extra="Bogus: 1"),
            'Line=3 Column=0 Message type "NV.Profiler.ProfilerSection" has no field named '
            '"Bogus".',
        ),
        (
            section_text("A", extra="Filter { MinArch: CC_99 }"),
            'Line=3 Column=18 Unknown enumeration value of "CC_99".',
        ),
        (section_text("A", extra="Order: -1"), "Line=3 Column=7 Expected integer, got: -"),
        (
            section_text("A", extra='Description: "open'),
            "Line=3 Column=13 String literals cannot cross line boundaries.",
        ),
        (section_text("A", extra="Metrics {"), "Line=3 Column=8 Expected identifier, got: "),
        (
            section_text("A", extra="Metrics { }\nMetrics { }"),
            'Line=4 Column=8 Non-repeated field "Metrics" is specified multiple times.',
        ),
        (
            section_text("A", extra='Header { Metrics { Name: "regex:([" } }'),
            "Line=0 Column=0 Invalid regex 'regex:(['",
        ),
        ("\ufeff" + section_text("A"), "Line=1 Column=0 Interpreting non ascii code point 239."),
        (
            section_text("two words"),
            'Line=0 Column=0 Identifier "two words" is empty or has blanks in it',
        ),
        (
            section_text(
                "A",
                extra='Header { Metrics { Name: "m" Options { Name: "n" CtrDomains: "wall" } } }',
            ),
            "Line=3 Column=49 Message type "
            '"NV.Profiler.ProfilerSectionMetricOption" has no field named "CtrDomains".',
        ),
    ],
)
def test_mistakes_name_file_line_and_column(text: str, listed: str) -> None:
    with pytest.raises(SectionError) as caught:
        parse_section(text.encode(), "s.section")
    assert caught.value.list_text == f"Error: {listed}"
    assert str(caught.value) == f"s.section: Error: {listed}"


@pytest.mark.parametrize(
    "data", [b"\xff\xfe", b"Identifier: \x00", b"{" * 5000, b"a: " + b"[" * 5000]
)
def test_what_is_no_text_is_a_mistake_too(data: bytes) -> None:
    with pytest.raises(SectionError):
        parse_section(data, "s.section")


def test_a_bad_file_does_not_stop_the_others(tmp_path: Path) -> None:
    write(tmp_path, "good.section", section_text("Good"))
    bad = write(tmp_path, "bad.SECTION", "Bogus: 1")
    write(tmp_path, "notes.txt", "not a section")
    loaded = load([tmp_path])
    assert [each.section.identifier for each in loaded.sections] == ["Good"]
    assert [file for file, _ in loaded.errors] == [bad]


def test_sections_come_by_order_and_then_by_name(tmp_path: Path) -> None:
    for identifier, extra in (("C", ""), ("B", ""), ("Z", "Order: 1"), ("A", "Order: 2")):
        write(tmp_path, f"{identifier}.section", section_text(identifier, extra=extra))
    assert [each.section.identifier for each in load([tmp_path]).sections] == ["Z", "A", "B", "C"]


def test_of_equal_identifiers_the_last_file_counts(tmp_path: Path) -> None:
    write(tmp_path, "a.section", section_text("Same", "first"))
    write(tmp_path, "b.section", section_text("Same", "second"))
    loaded = load([tmp_path])
    assert [each.section.display_name for each in loaded.sections] == ["second"]
    assert len(loaded.warnings) == 1
    assert "has the same identifier" in loaded.warnings[0]


def test_equal_display_names_are_warned_of(tmp_path: Path) -> None:
    for identifier in "AB":
        write(tmp_path, f"{identifier}.section", section_text(identifier, "same"))
    assert "same display name 'same'" in load([tmp_path]).warnings[0]


def test_sets_and_identifiers_select(tmp_path: Path) -> None:
    write(tmp_path, "a.section", section_text("A", extra='Sets { Identifier: "default" }'))
    write(tmp_path, "b.section", section_text("B", extra='Sets { Identifier: "full" }'))
    loaded = load([tmp_path])

    def selected(identifiers: Iterable[str] = (), sets: Iterable[str] = ()) -> list[str]:
        return [each.identifier for each in loaded.select(identifiers, sets)]

    assert selected() == ["A"]
    assert selected(sets=["full"]) == ["B"]
    assert selected(identifiers=["B"]) == ["B"]
    assert selected(sets=["all"]) == ["A", "B"]
    with pytest.raises(ReportError, match="no section 'C' in the search path; there are: A, B"):
        selected(identifiers=["C"])
    with pytest.raises(ReportError, match="no set 'huge'"):
        selected(sets=["huge"])


def test_hidden_files_are_no_sections(tmp_path: Path) -> None:
    write(tmp_path, ".a.section", section_text("A"))
    write(tmp_path, "b.section", section_text("B"))
    assert [each.section.identifier for each in load([tmp_path]).sections] == ["B"]


def test_folders_are_searched_in_the_order_of_their_names(tmp_path: Path) -> None:
    names = random.Random(3).sample(range(100, 1000), 40)
    for name in names:
        (tmp_path / str(name)).mkdir()
    found = search_path([], [str(tmp_path)])
    assert found == [tmp_path, *(tmp_path / str(name) for name in sorted(names))]


def test_the_folder_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(directories.DIRECTORY_VARIABLE, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert directories.user_directory() == tmp_path / "home/.local/share/pylink/sections"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert directories.user_directory() == tmp_path / "data/pylink/sections"
    monkeypatch.setenv(directories.DIRECTORY_VARIABLE, str(tmp_path / "own"))
    assert directories.user_directory() == tmp_path / "own"


def test_given_folders_replace_the_search_path(tmp_path: Path) -> None:
    deep = tmp_path / "one" / "two"
    deep.mkdir(parents=True)
    assert search_path([str(tmp_path)]) == [tmp_path]
    beside = tmp_path / "also"
    beside.mkdir()
    assert search_path([], [str(tmp_path)]) == [tmp_path, beside, tmp_path / "one", deep]
    with pytest.raises(DirectoryError, match="Failed to add section search path"):
        search_path([str(tmp_path / "missing")])


def test_stock_files_are_deployed_once_and_changes_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    monkeypatch.setenv(directories.DIRECTORY_VARIABLE, str(own))
    monkeypatch.delenv(directories.NO_DEPLOYMENT, raising=False)
    deployed, mine = search_path()
    assert mine == own
    assert re.fullmatch(rf"{re.escape(__version__)}-[0-9a-f]{{8}}", deployed.name)
    assert deployed.parent == own
    names = {file.name for file in directories.STOCK_DIRECTORY.iterdir() if file.is_file()}
    assert {file.name for file in deployed.iterdir()} == names
    changed = deployed / min(names)
    changed.write_text("changed")
    search_path()
    assert changed.read_text() == "changed"
    # Files of another release do not mix with these.
    newer = tmp_path / "stock"
    newer.mkdir()
    (newer / "New.section").write_text('Identifier: "New"\nDisplayName: "New"\n')
    monkeypatch.setattr(directories, "STOCK_DIRECTORY", newer)
    assert [file.name for file in search_path()[0].iterdir()] == ["New.section"]
    monkeypatch.setenv(directories.NO_DEPLOYMENT, "1")
    assert search_path()[0] == directories.STOCK_DIRECTORY


def test_what_sections_add_to_an_action() -> None:
    action = Action("read")
    action.set("file__bytes_read.sum", 21, {"a.cubin": 20, "b.cubin": 1})
    action.set("file__opened.sum", 2)
    report = Report(actions=[action])
    assert apply_sections(report, [parse(EXAMPLE)]) == []
    assert action.value("derived__twice") == 42
    assert action.metrics["derived__twice"].by_id() == {"a.cubin": 40, "b.cubin": 2}
    assert action.value("regex:file__.*\\.sum") == "file__bytes_read.sum,file__opened.sum"
    assert [each.identifier for each in action.sections] == ["Sample"]


def test_groups_are_the_metrics_that_name_them() -> None:
    text = section_text(
        "A",
        extra="""
        Header { Metrics { Name: "group:sizes" } }
        Metrics { Metrics { Name: "x" Groups: "sizes" } Metrics { Name: "y" Groups: "sizes" } }""",
    )
    action = Action("read")
    action.set("y", 1)
    action.set("x", 2)
    action.set("z", 3)
    apply_sections(Report(actions=[action]), [parse(text)])
    assert action.value("group:sizes") == "x,y"


def test_patterns_do_not_stand_for_patterns() -> None:
    text = section_text("A", extra='Header { Metrics { Name: "regex:.*share.*" } }')
    action = Action("read")
    action.set("breakdown:share", "a_share")
    action.set("a_share", 1)
    apply_sections(Report(actions=[action]), [parse(text)])
    assert action.value("regex:.*share.*") == "a_share"


SLOW = "(a+)+b"


@pytest.fixture
def little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "TIME_LIMIT", 0.5)
    monkeypatch.setattr(patterns, "_slow_expressions", set())


@pytest.mark.usefixtures("little_time")
def test_an_expression_of_a_section_has_a_time_limit() -> None:
    """The section comes from somebody else, and the names may come from a report."""
    text = section_text("A", extra=f'Header {{ Metrics {{ Name: "regex:{SLOW}" }} }}')
    actions = []
    for number in range(3):
        action = Action(f"read{number}")
        action.set("a" * 40, 1)
        actions.append(action)
    begin = time.monotonic()
    gaps = apply_sections(Report(actions=actions), [parse(text)])
    assert time.monotonic() - begin < 5
    assert {gap.metric for gap in gaps} == {f"regex:{SLOW}"}
    assert all("it takes longer than" in gap.reason for gap in gaps)


def test_expressions_find_the_same_apart() -> None:
    """Those that are not fast at a glance are matched by another process."""
    names = ["a_b", "a_c", "aab", "b" * 1001]
    for text in ("a.*", "(a|b).*", "a_[bc]", "(a+)+b", "(?i)A_B", "a.*b.*|.*c.*", "b*"):
        assert patterns.matching_names(f"regex:{text}", names) == [
            name for name in names if re.fullmatch(text, name)
        ]


@pytest.mark.parametrize("text", ["(" * 50_000 + ")" * 50_000, "a{1,99999999999999999999}"])
def test_an_expression_that_cannot_be_compiled_is_none(text: str) -> None:
    with pytest.raises(re.error):
        patterns.matching_names(f"regex:{text}", ["a"])


@pytest.mark.usefixtures("little_time")
def test_an_expression_of_metrics_has_a_time_limit() -> None:
    action = Action("read")
    action.set("a" * 40, 1)
    with pytest.raises(ReportError, match=r"--metrics regex:\(a\+\)\+b: it takes longer than"):
        with_metrics(Report(actions=[action]), [f"regex:{SLOW}"])


def test_what_has_neither_value_nor_instances_is_not_added() -> None:
    text = section_text(
        "A",
        extra="""Header { Metrics { Name: "list" } }
        MetricDefinitions { MetricDefinitions { Name: "sum" Expression: "list + by_id" } }""",
    )
    action = Action("read")
    action.set("list", None, [1, 2])
    action.set("by_id", None, {"a": 1})
    assert apply_sections(Report(actions=[action]), [parse(text)]) == []
    assert "sum" not in action.metrics


def test_missing_metrics_are_reported_once_and_required_ones_are_errors() -> None:
    text = section_text(
        "A",
        extra="""
        Header { Metrics { Name: "gone" } Metrics { Name: "needed" Filter {
          CollectionFilter { Importance: Required } } } }
        Metrics { Metrics { Name: "gone" } }""",
    )
    gaps = apply_sections(Report(actions=[Action(demangled_name="merge")]), [parse(text)])
    assert [(gap.metric, gap.is_error) for gap in gaps] == [("gone", False), ("needed", True)]
    assert str(gaps[0]) == "merge: section A: metric gone is missing"


def test_a_metric_that_another_action_has_is_no_gap() -> None:
    text = section_text(
        "A",
        extra="""
        Header { Metrics { Name: "both" } Metrics { Name: "one" Filter {
          CollectionFilter { Importance: Required } } } Metrics { Name: "gone" } }""",
    )
    read, merge = Action("read"), Action("merge")
    for action in (read, merge):
        action.set("both", 1)
    read.set("one", 1)
    gaps = apply_sections(Report(actions=[read, merge]), [parse(text)])
    assert list(map(str, gaps)) == ["read: section A: metric gone is missing"]
    assert [each.identifier for each in merge.sections] == ["A"]


def test_a_section_that_no_action_fits_is_left_out_in_silence() -> None:
    text = section_text(
        "A",
        extra="""
        Header { Metrics { Name: "gone" } Metrics { Name: "twice" } }
        MetricDefinitions { MetricDefinitions { Name: "twice" Expression: "gone * 2" } }""",
    )
    action = Action("read")
    assert apply_sections(Report(actions=[action]), [parse(text)]) == []
    assert action.sections == []


def test_what_cannot_be_derived_is_reported() -> None:
    text = section_text(
        "A",
        extra="""MetricDefinitions {
          MetricDefinitions { Name: "d1" Expression: "gone / 2" }
          MetricDefinitions { Name: "d2" Expression: "1 +" }
          MetricDefinitions { Name: "d3" Expression: "one - 2" } }""",
    )
    action = Action("read")
    action.set("one", 1)
    gaps = apply_sections(Report(actions=[action]), [parse(text)])
    assert [(gap.metric, gap.is_error) for gap in gaps] == [
        ("d1", False),
        ("d2", False),
        ("d3", False),
    ]
    assert gaps[0].reason == "cannot be derived: there is no metric gone"
    assert action.value("d3") == 0


@pytest.mark.parametrize("expression", ["gone / 2", "1 +"])
def test_a_required_metric_that_cannot_be_derived_is_an_error(expression: str) -> None:
    text = section_text(
        "A",
        extra=f"""
        Header {{ Metrics {{ Name: "half" Filter {{
          CollectionFilter {{ Importance: Required }} }} }} }}
        MetricDefinitions {{ MetricDefinitions {{ Name: "half" Expression: "{expression}" }} }}""",
    )
    (gap,) = apply_sections(Report(actions=[Action("read")]), [parse(text)])
    assert (gap.metric, gap.is_error) == ("half", True)
    assert gap.reason.startswith("cannot be derived: ")


def test_sections_whose_filter_does_not_match_are_left_out() -> None:
    section = parse(section_text("A", extra="Filter { MinArch: CC_80 }"))
    action = Action("read")
    apply_sections(Report(actions=[action]), [section])
    assert action.sections == []


@ncu.needs_sections
def test_all_sections_of_nsight_compute_load() -> None:
    loaded = load([ncu.SECTIONS])
    assert loaded.errors == []
    sections = [each.section for each in loaded.sections]
    assert len(sections) == 20
    kinds: Counter[str] = Counter()
    for section in sections:
        for body in section.body:
            pending = list(body.items)
            while pending:
                item = pending.pop()
                kinds[kind_of(item)] += 1
                if item.horizontal_container is not None:
                    pending += item.horizontal_container.items
    assert {name: kinds[name] for name in ("bar_chart", "roofline_chart", "line_chart")} == {
        "bar_chart": 6,
        "roofline_chart": 5,
        "line_chart": 4,
    }
    assert (kinds["source_metric_table"], kinds["table"]) == (3, 2)
    assert kinds["horizontal_container"] == 1
    assert sum(len(section.definitions()) for section in sections) == 17


def kind_of(item: BodyItem) -> str:
    return next(
        name
        for name in BodyItem.__slots__
        if name != "filter" and getattr(item, name) not in (None, b"")
    )


def listed_by_ncu(option: str) -> set[str]:
    """The identifiers that `ncu` prints for the stock files."""
    listed = subprocess.run(
        ["ncu", "--section-folder", directories.STOCK_DIRECTORY, option],
        env={"HOME": ncu.home(), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "Error" not in listed
    return {line.split()[0] for line in listed.splitlines() if line.startswith("Link")}


@ncu.needs_ncu
def test_nsight_compute_lists_the_stock_sections() -> None:
    """What we ship is a section file for its tool too, with the same identifiers."""
    found = listed_by_ncu("--list-sections")
    assert found == {
        each.section.identifier for each in load([directories.STOCK_DIRECTORY]).sections
    }


@ncu.needs_ncu
def test_nsight_compute_lists_the_stock_rules() -> None:
    """Its Python is older than ours: a rule that it cannot read is just missing from the list."""
    found = listed_by_ncu("--list-rules")
    assert found == {rule.identifier for rule in load_rules([directories.STOCK_DIRECTORY]).rules}
    assert len(found) >= 8
