"""`pylink report`: fits, sections and rules put into a report, lists, and mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.report_files import of_section, rule_text, section_text
from helpers.report_phases import show, written

from pylink import aprof
from pylink.command.cli import main
from pylink.report.file import read_report


@pytest.fixture
def file(tmp_path: Path) -> str:
    return written(tmp_path)


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
    shown = show(capfd, *words)
    assert "My own" in shown
    assert "from my rule" in shown
    results = read_report(out).actions[0].rule_results
    assert [result.identifier for result in results] == ["Mine"]


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
