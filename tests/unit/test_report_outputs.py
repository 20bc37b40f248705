"""Reports as CSV, JSON, pages and plots, and what several of them say together."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from helpers import demo
from helpers.report_phases import phase, report, show, write_file

import pylink
from pylink import aprof
from pylink.report.file import read_report, write_report
from pylink.report.model import (
    Action,
    BarChart,
    Body,
    BodyItem,
    Report,
    RuleResult,
    Scope,
    Section,
    SectionMetric,
)
from pylink.report.view import compare, plots, runs
from pylink.report.view.blocks import Plot
from pylink.report.view.terminal import BAR, BAR_WIDTH
from pylink.report.view.timeline import Stretch

CHROMIUM = shutil.which("chromium")


@pytest.fixture
def file(tmp_path: Path) -> str:
    return write_file(tmp_path)


def test_csv(capfd: pytest.CaptureFixture[str], file: str) -> None:
    rows = list(csv.DictReader(io.StringIO(show(capfd, file, "--csv"))))
    first = rows[0]
    assert (first["ID"], first["Name"], first["Section"]) == ("0", "read", "Inputs")
    assert (first["Metric Name"], first["Metric Value"]) == ("link__time_duration.sum", "1500000")
    assert first["Metric Unit"] == "nsecond"
    assert [row["Metric Value"] for row in rows if row["Metric Label"] == "Gone"] == ["n/a"] * 2
    assert {row["Rule Message"] for row in rows if row["Rule Type"] == "WRN"} == {
        "Use <fewer> inputs."
    }
    raw = list(csv.reader(io.StringIO(show(capfd, file, "--csv", "--page", "raw"))))
    assert raw[0][:2] == ["ID", "Name"]
    assert raw[1][raw[0].index("file__bytes_read.sum")] == "byte"
    assert [row[1] for row in raw[2:]] == ["read", "merge"]


def test_json_has_everything(capfd: pytest.CaptureFixture[str], file: str) -> None:
    document = json.loads(show(capfd, file, "--json"))
    action = document["actions"][0]
    assert action["metrics"]["file__bytes_read.sum"] == {
        "value": 5000,
        "unit": "byte",
        "instances": [["a.cubin", 4000], ["b.cubin", 1000]],
    }
    assert action["rules"][0]["metrics"] == {"link__estimated_speedup.pct": 12.0}
    assert action["sections"][0]["identifier"] == "LinkInput"


def test_chosen_metrics(capfd: pytest.CaptureFixture[str], file: str) -> None:
    wanted = "--metrics=link__target_arch,regex:file__.*"
    names, units, *rows = csv.reader(io.StringIO(show(capfd, file, wanted, "--csv")))
    assert names == ["ID", "Name", "file__bytes_read.sum", "link__target_arch"]
    assert units[2:] == ["byte", ""]
    assert [row[1:] for row in rows] == [["read", "5000", "sm_100"], ["merge", "5000", "sm_100"]]
    made = report()
    made.actions[1].set("only__bytes.sum", 3)
    write_report(made, file)
    _, _, *rows = csv.reader(io.StringIO(show(capfd, file, "--metrics=only__bytes.sum", "--csv")))
    assert [row[1:] for row in rows] == [["merge", "3"]]
    shown = show(capfd, file, wanted, "--compare", file)  # files may stand anywhere
    assert "Nothing changed" in shown


def test_comparison(capfd: pytest.CaptureFixture[str], tmp_path: Path, file: str) -> None:
    other = tmp_path / "b.ncu-rep"
    later = report(2)
    later.actions[1].set("only__bytes.sum", 3)
    write_report(later, other)
    out = show(capfd, "--compare", file, str(other))
    lines = [line.split() for line in out.splitlines()]
    assert "read Wall time 1.50 ms 3 ms +100.0%" in map(" ".join, lines)
    assert ["merge", "only__bytes.sum", "N/A", "3", "B", "new"] in lines
    assert not any("link__target_arch" in line for line in lines)
    assert "Nothing changed by 5% or more." in show(capfd, "--compare", file, file)


def test_changes() -> None:
    before, after = report(), report()
    assert compare.notable_changes(compare.compare(before, after)) == []
    after.actions[0].set("link__time_duration.sum", 1_530_000)  # 2 %
    assert compare.notable_changes(compare.compare(before, after)) == []
    before.actions[0].set("new__bytes.sum", 0)
    after.actions[0].set("new__bytes.sum", 2000)
    (change,) = compare.notable_changes(compare.compare(before, after))
    assert (change.metric, change.change_text) == ("new__bytes.sum", "+2.0 kB")
    after.actions[0].set("new__bytes.sum", -2000)
    (change,) = compare.notable_changes(compare.compare(before, after))
    assert change.change_text == "-2.0 kB"


def test_the_words_of_a_change() -> None:
    def shown(before: int | str | None, after: int | str | None) -> str:
        return compare.Change("read", "x__bytes.sum", "byte", before, after).change_text

    assert [shown(None, 1), shown(1, None)] == ["new", "gone"]
    assert [shown("a", "a"), shown("a", "b")] == ["", "differs"]
    assert [shown(10, 5), shown(10, 109), shown(10, 110)] == ["-50.0%", "+990.0%", "x11"]


def test_actions_of_one_name_are_compared_in_turn() -> None:
    before, after = (Report(actions=[phase("dedup", 10), phase("dedup", 20)]) for _ in range(2))
    for metric, factor in (("a__bytes.sum", 3), ("b__bytes.sum", 9), ("c__bytes.sum", 2)):
        before.actions[1].set(metric, 10)
        after.actions[1].set(metric, 10 * factor)
    after.actions[0].set("d__bytes.sum", 1)
    found = compare.notable_changes(compare.compare(before, after))
    assert [(change.action, change.metric) for change in found] == [
        ("dedup", "d__bytes.sum"),
        *(("dedup (2)", f"{name}__bytes.sum") for name in "bac"),  # the largest change first
    ]


def test_phases_of_links_of_two_sizes_are_compared() -> None:
    before, after = report(), report(2)
    for each, size in ((before, 5), (after, 10)):
        for action in each.actions:
            action.demangled_name = f"{action.function_name}({size} bytes)"
            action.mangled_name = f"kernel_{size}"  # as relocate has the function it shows
    changes = compare.notable_changes(compare.compare(before, after))
    assert {change.action for change in changes} >= {"read", "merge"}
    assert {change.change_text for change in changes} == {"+100.0%"}


def test_growth_from_run_to_run() -> None:
    reports = [report(1), report(4)]
    reports[1].actions[0].set("link__time_duration.sum", 16 * 1_500_000)
    assert runs.sizes_and_times(reports) == [(5_000, 1_500_000), (20_000, 24_000_000)]
    runs.add_runs(reports)
    assert reports[1].actions[0].value(runs.RUN_EXPONENT) == pytest.approx(2)
    assert runs.exponent([(5, 1), (6, 2)]) is None  # too close to say


def test_page_for_browsers(capfd: pytest.CaptureFixture[str], tmp_path: Path, file: str) -> None:
    later, page = tmp_path / "later.ncu-rep", tmp_path / "page.html"
    write_report(report(3), later)
    growth = tmp_path / "link.aprof"
    points = [aprof.Point.of_calls(size, [size * 3]) for size in (10, 20, 40, 80, 160)]
    aprof.write(aprof.Report(routines=[aprof.Routine(0, "merge", "pylink", points=points)]), growth)
    show(capfd, file, str(later), str(growth), "--html", str(page))
    text = page.read_text()
    assert text.count("<svg") == 3  # comparison, growth, one routine
    assert "Use &lt;fewer&gt; inputs." in text
    assert "<script" not in text
    for outside in ('src="http', 'href="http', "url(http", "@import"):
        assert outside not in text


def test_the_first_screen_has_times_and_bytes(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Both before anything else, with values; the bars of the timeline end where the link does."""
    path, page = tmp_path / "link.ncu-rep", tmp_path / "page.html"
    made = report()
    made.actions[0].set(
        "link__step_time_duration.sum", 9, {"read_files": 900_000, "parse": 500_000}
    )
    made.actions[-1].set(
        "elf__bytes_by_origin.sum", 9, {".text.* > a.cubin": 3000, ".symtab": 1000}
    )
    write_report(made, path)
    show(capfd, str(path), "--html", str(page))
    text = page.read_text()
    places = [text.index(f'id="{name}"') for name in ("timeline", "bytes", "advice")]
    assert places == sorted(places)
    assert places[-1] < text.index("About this report") < text.index("<nav")
    rows = re.findall(
        r'"name">([^<]+)</span>.*margin-left: ([0-9.]+)%; width: ([0-9.]+)%.*"number">([^<]+)<',
        text,
    )
    assert [(name, shown) for name, _, _, shown in rows] == [
        ("read", "1.50 ms"),
        ("read files", "900 us"),
        ("parse", "500 us"),
        ("merge", "500 us"),
    ]
    ends = [float(begin) + float(width) for _, begin, width, _ in rows]
    assert max(ends) == ends[-1] == pytest.approx(100, abs=0.1)
    first = text[places[1] : places[2]]
    assert re.findall(r'width: ([0-9.]+)%.*?"number">([^<]+)</span>', first) == [
        ("100.0", "3.0 kB"),
        ("100.0", "3.0 kB"),
        ("33.3", "1.0 kB"),
    ]


def test_a_long_list_of_names_leaves_room_for_labels(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path, page = tmp_path / "link.ncu-rep", tmp_path / "page.html"
    made = report()
    names = [f"link__{phase}_time_share.pct" for phase in ("read", "merge", "layout", "write")]
    made.actions[0].set("breakdown:link__time_share.pct", ",".join(names))
    write_report(made, path)
    show(capfd, str(path), "--html", str(page))
    assert f'<td class="words">{", ".join(names)}</td>' in page.read_text()


def test_axes_and_bars_of_plots_have_units() -> None:
    curve = Plot("", "size", "cost", (("a", ((1e7, 2e7), (4e7, 8e7))),), x_unit="byte")
    drawn = [
        plots.ranking([("a", 3e7), ("b", 1e7)], "t", "size", "byte"),
        plots.chart(curve),
        plots.chart(dataclasses.replace(curve, logarithmic=True)),
        plots.bars(["read"], [("a", [2e7]), ("b", [3e6])], "nsecond"),
        plots.timeline([Stretch("read", 0, 2e7), Stretch("merge", 2e7, 3e6)]),
    ]
    texts = [
        re.findall(r">([^<>]+)</text>", plots.image(figure, "svg").decode()) for figure in drawn
    ]
    assert not [words for found in texts for words in found if "1e" in words or "10^" in words]
    for found in texts[:3]:
        assert any(words.endswith(" MB") for words in found)
    for values, found in zip(
        (("30.0 MB", "10.0 MB"), ("20 ms", "3 ms"), ("20 ms", "3 ms")),
        (texts[0], *texts[3:]),
        strict=True,
    ):
        assert set(values) <= set(found)


def test_bars_of_a_chart_are_compared(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Metrics against each other, parts of one among themselves; what is 0 is left out."""
    path, page = tmp_path / "bars.ncu-rep", tmp_path / "page.html"
    action = Action("read")
    values = {"file__kept_bytes.sum": 4000, "file__folded_bytes.sum": 1000, "file__opened.sum": 0}
    for name, value in values.items():
        action.set(name, value)
    action.set("sect__input_bytes.sum", None, {".text": 300, ".debug": 3000})
    metrics = [SectionMetric(name, name[6:10]) for name in (*values, "sect__input_bytes.sum")]
    body = [Body([BodyItem(bar_chart=BarChart("Bytes", metrics=metrics))])]
    action.sections = [Section("Bars", "Bars", body=body)]
    write_report(Report(actions=[action]), path)
    show(capfd, str(path), "--html", str(page))
    shown = re.findall(
        r"<td[^>]*>([^<]*)</td>.*width: ([0-9.]+)%.*>([^<]+)</td></tr>", page.read_text()
    )
    assert shown == [
        (".debug", "100.0", "3.0 kB"),
        (".text", "10.0", "300 B"),
        ("kept", "100.0", "4.0 kB"),
        ("fold", "25.0", "1.0 kB"),
    ]
    rows = [line.split() for line in show(capfd, str(path)).splitlines() if BAR in line]
    assert [row[0] for row in rows] == [name for name, _, _ in shown]
    assert [len(row[1]) for row in rows] == [BAR_WIDTH, BAR_WIDTH // 10, BAR_WIDTH, BAR_WIDTH // 4]


def test_a_chart_of_parts_is_left_out_where_there_are_none(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path, metric = tmp_path / "parts.ncu-rep", "file__bytes_read.sum"
    chart = BarChart("By file", metrics=[SectionMetric(metric, "Bytes", show_instances=True)])
    section = Section("S", "S", body=[Body([BodyItem(bar_chart=chart)])])
    actions = [Action("read", sections=[section]), Action("merge", sections=[section])]
    actions[0].set(metric, 3000, {"a.cubin": 1000, "b.cubin": 2000})
    actions[1].set(metric, 3000)
    write_report(Report(actions=actions), path)
    read, merge = show(capfd, str(path)).split("[1] merge")
    assert "By file" in read
    assert "By file" not in merge


def test_a_page_says_nothing_of_rules_that_were_not_applied(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    made, path, page = report(), tmp_path / "plain.ncu-rep", tmp_path / "page.html"
    for results, said in (([RuleResult("R", "A rule")], True), ([], False)):
        made.actions[0].rule_results, made.actions[1].rule_results = results, []
        write_report(made, path)
        show(capfd, str(path), "--html", str(page))
        assert ("No rule found anything to change." in page.read_text()) == said


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_a_browser_shows_the_page(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, file: str
) -> None:
    page = tmp_path / "page.html"
    show(capfd, file, "--html", str(page))
    assert CHROMIUM is not None
    flags = "--headless --no-sandbox --disable-gpu --no-first-run --disable-quic --disable-sync"
    flags += " --disable-background-networking --disable-component-update"
    done = subprocess.run(
        [
            *(CHROMIUM, *flags.split(), f"--user-data-dir={tmp_path / 'profile'}"),
            *("--enable-logging=stderr", "--dump-dom", page.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "CONSOLE" not in done.stderr  # what the browser itself complains of in the page
    assert '<h2 id="advice">What to do</h2>' in done.stdout
    assert done.stdout.count('<h2 id="action-') == 2
    assert done.stdout.rstrip().endswith("</html>")


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_plots(capfd: pytest.CaptureFixture[str], tmp_path: Path, file: str, suffix: str) -> None:
    out = tmp_path / f"plot.{suffix}"
    show(capfd, file, "--plot", str(out))
    data = out.read_bytes()
    if suffix == "png":
        assert data.startswith(b"\x89PNG")
    else:
        assert ElementTree.fromstring(data).tag.endswith("svg")


@pytest.mark.parametrize(("option", "status"), [("--html", 0), ("--plot", 1)])
def test_without_matplotlib_pages_have_no_plots(
    tmp_path: Path, file: str, option: str, status: int
) -> None:
    out = tmp_path / "out.svg"
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from pylink.command.cli import main\n"
        "sys.exit(main(['report', *sys.argv[1:]], tool='pylink'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, file, option, out], capture_output=True, text=True, check=False
    )
    assert done.returncode == status
    page = out.read_text() if out.exists() else done.stderr
    assert "a plot needs the package matplotlib: pip install " in page
    assert "pylink-cuda[plot]" in page
    assert "<svg" not in page


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"section": ["Nope"]}, "no section 'Nope'"),
        ({"set": ["nope"]}, "no set 'nope'"),
        ({"rule": ["Nope"]}, "no rule 'Nope'"),
    ],
    ids=["section", "set", "rule"],
)
def test_names_that_no_report_will_have_are_refused_before_the_link(
    options: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    output = tmp_path / "linked.cubin"
    with pytest.raises(pylink.LinkError, match=reason):
        pylink.link(
            demo.cubins("sm_90a"),
            arch="sm_90a",
            output=output,
            profile=tmp_path / "link.ncu-rep",
            **options,
        )
    assert not output.exists()
    with pytest.raises(pylink.LinkError, match="no --profile"):
        pylink.link(demo.cubins("sm_90a"), arch="sm_90a", output=output, **options)


def test_what_there_is_to_measure(capfd: pytest.CaptureFixture[str]) -> None:
    shown = show(capfd, "--query-metrics")
    assert re.search(r"^link__time_duration\.sum +wall time$", shown, re.M)


def test_programs_are_told_too_when_a_link_waited(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Wall and processor time that disagree are said wherever the link is summed up."""
    whole = Action(scope=Scope.RANGE)
    whole.set("link__time_duration.sum", 100_000_000)
    whole.set("link__cpu_time_duration.sum", 10_000_000)
    path = tmp_path / "waited.ncu-rep"
    write_report(Report(actions=[whole]), path)
    words = "It waited for 90 ms of that: its processor time was 10 ms."
    assert words in json.loads(show(capfd, str(path), "--json"))["summary"]
    assert words in show(capfd, str(path), "--page", "session", "--csv")
    for page in ("details", "raw", "source", "session"):
        assert words in " ".join(show(capfd, str(path), "--page", page).split())


def test_of_two_links_each_quantity_is_compared_once(tmp_path: Path) -> None:
    """Twice the input: what is another metric again, for its parts, is not a change of its own."""
    cubins = demo.cubins("sm_90a")
    paths = [tmp_path / "few.ncu-rep", tmp_path / "all.ncu-rep"]
    for path, few in zip(paths, (cubins[:1], cubins[:2]), strict=True):
        pylink.link(few, arch="sm_90a", profile=path, relocatable_link=True)
    before, after = map(read_report, paths)
    kept = compare.notable_changes(compare.compare(before, after))
    assert kept
    for name in compare.REPEATED:
        assert not any(change.metric == name for change in kept)
        assert any(name in action.metrics for action in before.actions)
