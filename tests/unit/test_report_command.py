"""`pylink report`: fits, sections and rules put into a report, lists, and mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.report_files import of_section, rule_text, section_text
from helpers.report_phases import show, write_file

from pylink import aprof
from pylink.command.cli import main
from pylink.report.file import read_report, write_report


@pytest.fixture
def file(tmp_path: Path) -> str:
    return write_file(tmp_path)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder with a section of the user's."""
    folder = tmp_path / "own"
    folder.mkdir()
    extra = 'Sets { Identifier: "default" }\n'
    extra += 'Header { Metrics { Label: "T" Name: "link__time_duration.sum" } }'
    (folder / "own.section").write_text(section_text("Own", "My own", extra))
    return folder


def test_fits(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    points = [aprof.Point.of_calls(size, [size * size]) for size in (10, 20, 40, 80, 160)]
    path = tmp_path / "link.aprof"
    aprof.write(aprof.Report(routines=[aprof.Routine(0, "slow", "pylink", points=points)]), path)
    out = show(capfd, str(path), "--fit")
    assert "Grow faster than n log n: slow." in out


def test_rules_are_applied_and_exported(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, file: str, own: Path
) -> None:
    (own / "own.py").write_text(rule_text("fe.message('from my rule')", "Mine", of_section("Own")))
    out = tmp_path / "out.ncu-rep"
    words = [file, "--section-folder", str(own), "--apply-rules", "--export", str(out)]
    assert show(capfd, *words) == ""
    results = read_report(out).actions[0].rule_results
    assert [result.identifier for result in results] == ["Mine"]


@pytest.mark.parametrize(
    "words", [["--csv"], ["--page", "details"], ["--all"], ["--metrics", "link__target_arch"]]
)
def test_what_is_asked_for_beside_an_export_is_printed(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, file: str, words: list[str]
) -> None:
    out = tmp_path / "out.ncu-rep"
    assert "sm_100" in show(capfd, file, *words, "--all", "--export", str(out))
    assert len(read_report(out).actions) == len(read_report(Path(file)).actions)


def test_rules_that_fail_are_named_and_no_others(
    capfd: pytest.CaptureFixture[str], file: str, own: Path
) -> None:
    def rule(name: str, body: str, extra: str = "") -> None:
        title = f"def get_name():\n    return 'The rule {name}'\n"
        (own / f"{name}.py").write_text(rule_text(body, name, title + extra))

    def needs(metric: str) -> str:
        return f"def evaluate(handle):\n    NvRules.require_metrics(handle, ['{metric}'])"

    rule("Fails", "1 / 0")
    rule("Lacks", "fe.message('never')", needs("gone"))
    # Only one of the phases has this.
    rule("Partly", "fe.message('partly')", needs("some__phase.sum"))
    rule("Speaks", "fe.message(fe.MsgType_MSG_ERROR, 'the output is too large')")
    report = read_report(Path(file))
    report.actions[0].set("some__phase.sum", 1)
    write_report(report, file)
    shown = show(capfd, file, "--section-folder", str(own), "--apply-rules")
    assert "\n2 rules could not be applied: The rule Fails, The rule Lacks\n" in shown
    assert "ERR  read: the output is too large" in shown.split("could not be applied")[0]
    assert shown.count("ERR  Rule not applied") == 2
    assert "needs the metrics some__phase" not in shown
    page = own / "page.html"
    assert (
        main(["report", file, "--section-folder", str(own), "--apply-rules", "--html", str(page)])
        == 0
    )
    assert (
        "2 rules could not be applied: The rule Fails, The rule Lacks</summary>" in page.read_text()
    )


def test_tables_of_rules_stand_under_their_words(
    capfd: pytest.CaptureFixture[str], file: str, own: Path
) -> None:
    body = "fe.generate_table(fe.message('here:'), ['name', 'n'], [['a', 1], ['b', 2]])"
    (own / "own.py").write_text(rule_text(body))
    shown = show(capfd, file, "--section-folder", str(own), "--apply-rules")
    lines = shown.splitlines()
    start = next(at for at, line in enumerate(lines) if line.endswith("here:"))
    at = lines[start].index("here:")
    for line in lines[start + 1 : start + 4]:
        assert line[:at].isspace()
        assert not line[at].isspace()


def test_sections_of_one_name_are_told_apart(
    capfd: pytest.CaptureFixture[str], file: str, own: Path
) -> None:
    own_section = (own / "own.section").read_text()
    (own / "other.section").write_text(own_section.replace('"Own"', '"Other"'))
    words = ["report", file, "--section-folder", str(own), "--section", "Own,Other"]
    assert main(words) == 0
    shown, notes = capfd.readouterr()
    assert "  My own (Own)\n" in shown
    assert "  My own (Other)\n" in shown
    text = (
        "note: sections Other and Own have the same display name 'My own', so tools confuse them\n"
    )
    assert notes == f"pylink report: {text}"
    assert main([*words, "--csv"]) == 0
    rows = capfd.readouterr().out.splitlines()
    assert sum("My own (Own)" in row for row in rows) == sum(
        "My own (Other)" in row for row in rows
    )
    listing = ["--list-sections", "--section-folder", str(own)]
    assert main(["report", *listing]) == 0
    assert capfd.readouterr().err == f"pylink report: {text}"
    assert main(listing) == 0
    assert capfd.readouterr().err == f"pylink: {text}"


def test_a_bad_derived_expression_is_listed(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bad = 'MetricDefinitions { MetricDefinitions { Name: "derived__x" Expression: "a + b + c" } }'
    (tmp_path / "bad.section").write_text(section_text("Bad", extra=bad))
    (tmp_path / "good.section").write_text(section_text("Good", extra=bad.replace(" + c", "")))
    assert main(["report", "--list-sections", "--section-folder", str(tmp_path)]) == 1
    listed = capfd.readouterr().out
    assert f"{tmp_path}/bad.section Error: metric derived__x: 'a + b + c' is not a metric" in listed
    assert listed.count("Error: ") == 1


def test_a_required_metric_that_is_missing_is_a_mistake(
    capfd: pytest.CaptureFixture[str], file: str, own: Path
) -> None:
    needs = "Filter { CollectionFilter { Importance: Required } }"
    header = f'Header {{ Metrics {{ Name: "gone" {needs} }} }}'
    (own / "needs.section").write_text(section_text("Needs", extra=header))
    assert main(["report", file, "--section-folder", str(own), "--section", "Needs"]) == 1
    err = capfd.readouterr().err
    assert err == "pylink report: read: section Needs: metric gone is missing\n"


def test_of_several_rules_the_named_ones_are_applied(
    capfd: pytest.CaptureFixture[str], file: str, own: Path
) -> None:
    for name in ("A", "B", "C"):
        (own / f"{name}.py").write_text(rule_text(f"fe.message('from {name}')", name))
    shown = show(capfd, file, "--section-folder", str(own), "--rule", "A,C")
    assert [f"from {name}" in shown for name in "ABC"] == [True, False, True]


def test_a_folder_puts_its_sections_in_place_of_the_others(
    capfd: pytest.CaptureFixture[str], file: str, own: Path
) -> None:
    shown = show(capfd, file, "--section-folder", str(own))
    assert "  My own" in shown
    assert "  Inputs" not in shown


def test_lists(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "a.section").write_text('Identifier: "A"\nDisplayName: "An A"\n')
    (tmp_path / "b.section").write_text("Bogus: 1\n")
    (tmp_path / "r.py").write_text(
        "def get_identifier():\n    return 'R'\ndef apply(handle):\n    pass\n"
    )
    words = ["report", "--list-sections", "--list-rules", "--section-folder", str(tmp_path)]
    assert main(words, tool="pylink") == 1
    out = capfd.readouterr().out
    assert f"A          An A         yes     {tmp_path}/a.section" in out
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
    assert err.startswith("pylink report: ")
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
