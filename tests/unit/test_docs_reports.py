"""docs/reports.md and docs/report-rules.md: what they show runs, and they name what is there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.sessions import blocks, commands, sessions

import pylink
from pylink.options.help import HELP
from pylink.options.table import OPTIONS
from pylink.report import read_report
from pylink.report.rules.rulefiles import load_rules
from pylink.report.sections.directories import STOCK_DIRECTORY
from pylink.report.sections.sectionfiles import load
from pylink.report.view.arguments import parser

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "reports.md").read_text()
RULES = (ROOT / "docs" / "report-rules.md").read_text()
PROGRAMS = [block.text for block in blocks(GUIDE) if block.language == "python"]
(RULE,) = [block for block in blocks(RULES) if block.language == "python"]
(SECTION,) = [block for block in blocks(RULES) if block.language == "protobuf"]
# Their figures differ from link to link; what stays is in the tests below.
COMMANDS = [command for session in sessions(GUIDE) for command, _ in commands(session)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of inputs in which the page's commands have been run."""
    made = tmp_path_factory.mktemp("reports")
    shutil.copytree(ROOT / "demo" / "cubins" / "sm_90a", made / "build")
    user = made / "sections"
    user.mkdir()
    for block in (SECTION, RULE):
        (user / block.title).write_text(block.text)
    for command in COMMANDS:
        done = run(["bash", "-c", f"{shlex.quote(sys.executable)} -m {command}"], made)
        assert (done.returncode, done.stderr) == (0, ""), command
        (made / f"{len(list(made.glob('*.out')))}.out").write_text(done.stdout)
    return made


def run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYLINK_SECTIONS": str(folder / "sections"),
        "PYTHONPATH": str(Path(pylink.__file__).parents[1]),
    }
    return subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_commands_make_what_the_page_says(folder: Path) -> None:
    shown = (folder / "1.out").read_text()
    assert shown.startswith("The link took ")
    assert "Processor" in shown
    assert "--all shows every action and section" in shown
    html = (folder / "link.html").read_text()
    assert "What to do" in html
    assert "How cost grows with size" in html
    assert "part.ncu-rep" in (folder / "growth.html").read_text()


def test_the_section_and_the_rule_are_used(folder: Path) -> None:
    shown = [
        each for each in read_report(folder / "link.ncu-rep").actions if each.section("Reading")
    ]
    assert [each.function_name or "range" for each in shown] == ["read", "range"]
    read = shown[0]
    assert isinstance(read.value("derived__read_per_kb"), int)
    (result,) = [each for each in read.rule_results if each.identifier == "SlowFile"]
    ((message, (focus,)),) = result.messages()
    assert re.fullmatch(r"build/\w+\.cubin took longest to read\.", message.message)
    assert focus.metric_name == "file__read_time_duration.sum"


@pytest.mark.parametrize(("number", "expected"), list(enumerate(["nsecond", ".cubin", "merge"])))
def test_the_programs_run(folder: Path, number: int, expected: str) -> None:
    done = run([sys.executable, "-c", PROGRAMS[number]], folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert expected in done.stdout


def test_the_tables_name_every_stock_file() -> None:
    rows = set(re.findall(r"^\| (Link\w+) \|", RULES, re.MULTILINE))
    stock = {each.section.identifier for each in load([STOCK_DIRECTORY]).sections}
    assert rows == stock | {each.identifier for each in load_rules([STOCK_DIRECTORY]).rules}


def test_the_options_are_there() -> None:
    known = {f"--{option.long}" for option in OPTIONS} | {"--import"}
    known |= {word for each in parser()._actions for word in each.option_strings}
    assert set(re.findall(r"--[a-z][a-z-]+", GUIDE + RULES)) <= known


def test_what_a_growth_profile_costs_is_said_in_one_way() -> None:
    """The help, the page of the interface and both pages of profiles have the same figures."""
    cost = re.compile(r"[0-9]+ to [0-9]+ s of processor time[^:.]*? times as long as the link if")
    places = ["docs/aprof.md", "docs/profile.md", "docs/python.md", "src/pylink/api/options.py"]
    texts = [(ROOT / place).read_text() for place in places] + [HELP["profile-aprof"][1]]
    said = [cost.findall(" ".join(text.split())) for text in texts]
    assert [len(found) for found in said] == [1] * 5
    figures = {tuple(re.findall(r"[0-9]+", found)) for (found,) in said}
    assert len(figures) == 1
