"""`pylink report`: what is shown on a terminal, as CSV, JSON and a page, and of comparisons."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from helpers.report_link import link_report

from pylink import aprof
from pylink.cli import main
from pylink.report.file import read_report, write_report
from pylink.report.model import (
    Action,
    BarChart,
    Body,
    BodyItem,
    FocusMetric,
    Header,
    MessageType,
    NvtxState,
    Process,
    Report,
    RuleItem,
    RuleMessage,
    RuleResult,
    Scope,
    Section,
    SectionMetric,
    Table,
)
from pylink.report.view import compare, numbers, runs
from pylink.report.view.markup import plain
from pylink.report.view.pages import action_pages, largest
from pylink.report.view.terminal import bar, short

CHROMIUM = shutil.which("chromium")


def phase(name: str, duration: int, size: int = 5_000) -> Action:
    action = Action(name, name, name, thread_id=1)
    action.stream_name = "link"
    action.set("link__time_duration.sum", duration)
    action.set("file__bytes_read.sum", size, {"a.cubin": size - 1000, "b.cubin": 1000})
    action.set("link__target_arch", "sm_100")
    action.nvtx = NvtxState()
    action.nvtx.push(1, ["link", name], domain="pylink")
    action.sections = [
        Section(
            "LinkInput",
            "Inputs",
            order=1,
            description="What was read.",
            header=Header(
                metrics=[
                    SectionMetric("link__time_duration.sum", "Time"),
                    SectionMetric("gone__bytes.sum", "Gone"),
                ]
            ),
            body=[
                Body(
                    [
                        BodyItem(
                            bar_chart=BarChart(
                                "By file", metrics=[SectionMetric("file__bytes_read.sum", "Bytes")]
                            )
                        ),
                        BodyItem(
                            table=Table(
                                "Settings",
                                columns=1,
                                metrics=[SectionMetric("link__target_arch", "Target")],
                            )
                        ),
                    ]
                )
            ],
        )
    ]
    result = RuleResult("R", "A rule", section_identifier="LinkInput")
    result.add(
        RuleItem(
            RuleMessage("Use <fewer> @section:X:inputs@.", MessageType.WARNING, name="Title"),
            focus_metrics=[FocusMetric(None, "link__estimated_speedup.pct", 12.0)],
        )
    )
    action.rule_results = [result]
    return action


def report(scale: int = 1) -> Report:
    return Report(
        Process(1234, "host", "pylink"),
        actions=[phase("read", 1_500_000 * scale, 5_000 * scale), phase("merge", 500_000 * scale)],
    )


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "link.ncu-rep"
    write_report(report(), path)
    return str(path)


def show(capfd: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["report", *words], tool="pylink") == 0, capfd.readouterr().err
    return capfd.readouterr().out


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0, "byte", "0 B"),
        (999, "byte", "999 B"),
        (13_840, "byte", "13.84 kB"),
        (86_000_000, "byte", "86 MB"),
        (1_500_000, "nsecond", "1.50 ms"),
        (12_345_678_901, "nsecond", "12.35 s"),
        (46.543, "%", "46.54 %"),
        (0.00034, "", "0.00034"),
        (1234567, "", "1,234,567"),
        (2.5e9, "byte/second", "2.50 GB/s"),
        (None, "byte", "N/A"),
        ("sm_80", "", "sm_80"),
        (float("nan"), "", "nan"),
        (-1500, "byte", "-1.50 kB"),
    ],
)
def test_units_as_people_read_them(value: float | str | None, unit: str, shown: str) -> None:
    assert numbers.text(value, unit) == shown


def test_bars() -> None:
    assert [len(bar(value, 100)) for value in (0, 0.1, 50, 100)] == [0, 1, 16, 32]
    pairs = tuple((f"f{at}", at) for at in range(1, 15))
    assert largest(pairs)[0] == ("f14", 14.0)
    assert largest(pairs)[-1] == ("4 others", 10.0)
    assert len(largest(pairs)) == 11


def test_markup() -> None:
    text = "See @section:A:that@, @url:this:https://x.y/z@, @sass:0x80:here@, @source:a.cu:3:there@"
    assert plain(text) == "See that, this (https://x.y/z), here (0x80), there (a.cu:3)"
    assert plain("a@b and 5 @ 3") == "a@b and 5 @ 3"


def test_details_on_a_terminal(capfd: pytest.CaptureFixture[str], file: str) -> None:
    out = show(capfd, file)
    assert "\x1b" not in out  # piped
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "[0] read" in lines
    assert "Time 1.50 ms" in lines
    assert "Gone N/A" in lines
    assert f"a.cubin {bar(4000, 4000)} 4 kB" in lines
    assert "Target sm_100" in lines
    assert "WRN Title: Use <fewer> inputs." in lines


def test_advice_and_the_whole_link_come_first(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    made = report()
    made.actions.append(Action(scope=Scope.RANGE))
    made.actions[-1].set("link__time_duration.sum", 2_000_000)
    write_report(made, tmp_path / "whole.ncu-rep")
    out = show(capfd, str(tmp_path / "whole.ncu-rep"))
    headings = [line for line in out.splitlines() if line.startswith(("What", "["))]
    assert headings == ["What to do", "[2] whole link", "[0] read", "[1] merge"]
    assert "WRN  read: Use <fewer> inputs." in out


def test_of_many_comparisons_the_longest_are_shown(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path, page = tmp_path / "pairs.ncu-rep", tmp_path / "page.html"
    pairs = [phase("dedup", 1000 + number) for number in range(9)]
    write_report(Report(actions=[phase("read", 1), *pairs]), path)
    out = show(capfd, str(path))
    assert re.findall(r"^\[(\d)\]", out, re.MULTILINE) == ["0", "6", "7", "8", "9"]
    assert "5 shorter actions are left out" in out
    assert len(re.findall(r"^\[", show(capfd, str(path), "--instances"), re.MULTILINE)) == 10
    show(capfd, str(path), "--html", str(page))
    assert "5 shorter actions are left out." in page.read_text()


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


def test_a_report_without_source_counters_says_so(
    capfd: pytest.CaptureFixture[str], file: str
) -> None:
    assert "No counter of this report" in show(capfd, file, "--page", "source")


def test_sections_that_extend_another_are_shown_in_it() -> None:
    action = phase("read", 5)
    table = Table("Settings", columns=1, metrics=[SectionMetric("link__target_arch", "Target")])
    more = Section("More", "More", extends="LinkInput", body=[Body([BodyItem(table=table)])])
    action.sections.append(more)
    ((section,),) = [page.sections for page in action_pages(Report(actions=[action]))]
    assert section.identifier == "LinkInput"
    assert section.blocks[-1].title == "More: Settings"


def test_colour_on_request(capfd: pytest.CaptureFixture[str], file: str) -> None:
    assert "\x1b[" in show(capfd, file, "--color", "always")
    assert "\x1b[" not in show(capfd, file, "--color", "never")


def test_other_pages(capfd: pytest.CaptureFixture[str], file: str) -> None:
    raw = show(capfd, file, "--page", "raw", "--instances")
    assert "link__target_arch" in raw
    assert "b.cubin" in raw
    session = show(capfd, file, "--page", "session")
    assert "pylink (1234)" in session
    assert "read" not in session


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
    shown = show(capfd, file, wanted, "--compare", file)  # files may stand anywhere
    assert "Nothing changed" in shown


def test_comparison(capfd: pytest.CaptureFixture[str], tmp_path: Path, file: str) -> None:
    other = tmp_path / "b.ncu-rep"
    later = report(2)
    later.actions[1].set("only__bytes.sum", 3)
    write_report(later, other)
    out = show(capfd, "--compare", file, str(other))
    lines = [line.split() for line in out.splitlines()]
    assert ["read", "link__time_duration.sum", "1.50", "ms", "3", "ms", "+100.0%"] in lines
    assert ["merge", "only__bytes.sum", "N/A", "3", "B", "new"] in lines
    assert not any("link__target_arch" in line for line in lines)
    assert "Nothing changed by 5% or more." in show(capfd, "--compare", file, file)


def test_changes() -> None:
    before, after = report(), report()
    assert compare.notable(compare.compare(before, after)) == []
    after.actions[0].set("link__time_duration.sum", 1_530_000)  # 2 %
    assert compare.notable(compare.compare(before, after)) == []
    before.actions[0].set("new__bytes.sum", 0)
    after.actions[0].set("new__bytes.sum", 2000)
    (change,) = compare.notable(compare.compare(before, after))
    assert (change.metric, change.shown) == ("new__bytes.sum", "+2 kB")


def test_growth_from_run_to_run() -> None:
    reports = [report(1), report(4)]
    reports[1].actions[0].set("link__time_duration.sum", 16 * 1_500_000)
    assert runs.add_runs(reports) == [(5_000, 1_500_000), (20_000, 24_000_000)]
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
    assert text.count("<svg") == 4  # timeline, comparison, growth, one routine
    assert "Use &lt;fewer&gt; inputs." in text
    assert "<script" not in text
    for outside in ('src="http', 'href="http', "url(http", "@import"):
        assert outside not in text


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


def test_fits(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    points = [aprof.Point.of_calls(size, [size * size]) for size in (10, 20, 40, 80, 160)]
    path = tmp_path / "link.aprof"
    aprof.write(aprof.Report(routines=[aprof.Routine(0, "slow", "pylink", points=points)]), path)
    out = show(capfd, str(path), "--fit")
    assert "Grow faster than the link: slow." in out


def test_rules_are_applied_and_exported(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, file: str
) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "own.section").write_text(
        'Identifier: "Own"\nDisplayName: "My own"\nSets { Identifier: "default" }\n'
        'Header { Metrics { Label: "T" Name: "link__time_duration.sum" } }\n'
    )
    (folder / "own.py").write_text(
        "import NvRules\n"
        "def get_identifier():\n    return 'Mine'\n"
        "def get_section_identifier():\n    return 'Own'\n"
        "def apply(handle):\n"
        "    NvRules.get_context(handle).frontend().message('from my rule')\n"
    )
    out = tmp_path / "out.ncu-rep"
    words = [file, "--section-folder", str(folder), "--apply-rules", "--export", str(out)]
    shown = show(capfd, *words)
    assert "My own" in shown
    assert "from my rule" in shown
    results = read_report(out).actions[0].rule_results
    assert [result.identifier for result in results] == ["Mine"]


def test_lists(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "a.section").write_text('Identifier: "A"\nDisplayName: "An A"\n')
    (tmp_path / "b.section").write_text("Bogus: 1\n")
    (tmp_path / "r.py").write_text(
        "def get_identifier():\n    return 'R'\ndef apply(handle):\n    pass\n"
    )
    words = ["report", "--list-sections", "--list-rules", "--section-folder", str(tmp_path)]
    assert main(words, tool="pylink") == 1
    out = capfd.readouterr().out
    assert f"A          An A         no      {tmp_path}/a.section" in out
    assert 'Error: Line=1 Column=0 Message type "NV.Profiler.ProfilerSection" has no' in out
    assert f"{tmp_path}/r.py" in out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "no report given"),
        (["missing"], "missing: No such file or directory"),
        (["{file}", "--plot", "x.gif"], "x.gif: --plot draws .svg and .png files"),
        (["{file}", "--compare"], "--compare needs two reports"),
        (["{file}", "--fit"], "--fit needs a report of --profile-aprof"),
        (["{file}", "--section", "Nope"], "no section 'Nope' in the search path"),
        (["{file}", "--rule", "Nope"], "no rule 'Nope' in the search path"),
        (["{file}", "--html", "/missing/x"], "No such file or directory"),
        (["{file}", "--metrics", "nope"], "no metric 'nope' in the report"),
        (["{file}", "--metrics", "regex:("], "--metrics regex:(: "),
        (["--list-rules", "--section-folder", "/missing"], "Failed to add section search path"),
        (["{cut}"], "cut.ncu-rep: block 1, offset"),
        (["{text}"], "text:1: version 0 has 7 numbers"),
    ],
)
def test_mistakes(
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    file: str,
    words: list[str],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYLINK_SECTIONS", str(tmp_path / "sections"))
    cut, text = tmp_path / "cut.ncu-rep", tmp_path / "text"
    cut.write_bytes(Path(file).read_bytes()[:-7])
    text.write_text("p what is this\n")
    filled = [word.format(file=file, cut=cut, text=text) for word in words]
    assert main(["report", *filled], tool="pylink") == 1
    err = capfd.readouterr().err
    assert err.startswith("pylink fatal   : ")
    assert reason in err
    assert len(err.splitlines()) == 1


def test_the_link_lists_sections_and_rules_too(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "bad.section").write_text('Identifier: "B"\n')
    (tmp_path / "bad.py").write_text("def get_identifier(:\n")
    words = ["--list-sections", "--list-rules", "--section-folder", str(tmp_path)]
    assert main(words, tool="pylink") == 1
    out = capfd.readouterr().out
    assert f"{tmp_path}/bad.section Error: Line=0 Column=0 Message missing required" in out
    assert "line 1: invalid syntax" in out
    assert main(["--list-sets", "--section-folder", "/missing"], tool="pylink") == 1
    assert "Failed to add section search path /missing" in capfd.readouterr().err
