"""Mistakes of the command line: said in the form that is asked for, with what was meant."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import sarif
from helpers.cubin_builder import one_kernel

from pylink.command.cli import main
from pylink.diagnostics import KINDS
from pylink.options.filenames import SIDE_OPTIONS
from pylink.options.help import HELP
from pylink.options.table import FLAG, NEVER, OPTIONS, SPELLINGS, Option

# Each is one mistake that ends the reading of the options, and what was meant.
MISTAKES = [
    (["-bogus"], "unknown-option", None),
    (["--verbos"], "unknown-option", "--verbose"),
    (["-arhc=sm_80"], "unknown-option", "-arch"),
    (["-arch=sm_9a"], "undefined-value", "sm_90a"),
    (["-arch=sm_80", "--color=alway"], "undefined-value", "always"),
    (["-m"], "argument-expected", None),
    (["-v=1"], "no-argument-expected", None),
    (["-m", "x"], "number-expected", None),
    (["-optf", "missing"], "cannot-open-options-file", None),
    (["-optf", "stray"], "stray-character", None),
    (["-optf", "outer"], "unknown-option", "--verbose"),
    (["--diag-suppress=stack-sise"], "unknown-diagnostic", "stack-size"),
    (["inspcet", "a.cubin"], "unknown-command", "inspect"),
    (["frobnicate"], "unknown-command", None),
    (["-arch=compute_80", "a.cubin"], "virtual-target-not-built", None),
    ([], "unknown-arch", None),
]


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stray").write_text('"a')
    (tmp_path / "outer").write_text("-optf inner")
    (tmp_path / "inner").write_text("--verbsoe")
    (tmp_path / "a.cubin").write_bytes(one_kernel().build())


def run(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    status = main(words)
    out, err = capfd.readouterr()
    assert out == ""
    return status, err


def kind_number(kind: str) -> str:
    return f"EC{KINDS[kind][0]}"


@pytest.mark.parametrize(("words", "kind", "meant"), MISTAKES)
@pytest.mark.parametrize("first", [True, False])
def test_every_form_has_every_mistake_wherever_the_form_is_asked_for(
    words: list[str], kind: str, meant: str | None, first: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    def asked(*form: str) -> str:
        # One is the first word by nature, and one the last.
        behind = kind == "argument-expected" or (first and kind != "unknown-command")
        given = [*form, *words] if behind else [*words, *form]
        status, err = run(capfd, *given)
        assert status == 1
        return err

    (result,) = json.loads(f"[{asked('--diagnostics_format=sarif')}]")
    assert (result["ruleId"], result["level"]) == (kind_number(kind), "catastrophe")
    text = asked("--diagnostics_format", "text")
    assert text.startswith(
        ("Command-line error: ", "Catastrophic error: ", "missing: catastrophic")
    )
    assert (f"did you mean '{meant}'?" in text) == (meant is not None)
    assert text.endswith("Link terminated.\n")
    plain = asked("--diagnostics_format=nvlink")
    assert plain.startswith("pylink fatal   : ")
    # What is known of a way out follows, as a note.
    assert [line.split()[1] for line in plain.splitlines()] in (["fatal"], ["fatal", "note"])
    if kind == "unknown-diagnostic":  # found before files of reports are opened
        return
    asked("--sarif-output=document", "--diag-log=log", "--display-error-number")
    document = json.loads(Path("document").read_text())
    sarif.validator().validate(document)
    (made,) = document["runs"]
    assert [result["ruleId"] for result in made["results"]] == [kind_number(kind)]
    assert made["invocations"][0]["executionSuccessful"] is False
    assert Path("log").read_text()[0] == "C"


def test_the_note_on_all_options_names_a_command_that_prints_them(
    capfd: pytest.CaptureFixture[str],
) -> None:
    status, err = run(capfd, "--bogus", "--diagnostics_format=text")
    assert status == 1
    [command] = re.findall(r"all options: pylink (.*)", err)
    assert main(command.split(), tool="pylink") == 0
    out = capfd.readouterr().out
    assert [
        option.long for option in OPTIONS if option.built and f"--{option.long}" not in out
    ] == []


def test_defaults_in_the_help_are_among_the_choices() -> None:
    defaults = {
        option.long: (named[1], [str(choice) for choice in option.choices])
        for option in OPTIONS
        if option.long in HELP and option.choices
        if (named := re.search(r"\(default: (\w+)\)", HELP[option.long][1]))
    }
    assert "apply-rules" in defaults
    wrong = [name for name, (default, choices) in defaults.items() if default not in choices]
    assert wrong == []


def test_mistakes_in_a_file_or_the_environment_name_it(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, text = run(capfd, "--output_mode=text", "-optf=outer")
    assert "Note: it is in options file 'inner'\nNote: it is in options file 'outer'\n" in text
    monkeypatch.setenv("PYLINK_OPTIONS", "--output_mode=text -x")
    status, text = run(capfd, "-arch=sm_80", "a.cubin", "-o", "o")
    assert (status, "the environment variable PYLINK_OPTIONS" in text) == (1, True)
    monkeypatch.setenv("PYLINK_OPTIONS", '"')
    assert run(capfd, "-v") == (1, "pylink fatal   : Stray '\"' character\n")


def test_a_redefinition_obeys_options_but_in_the_form_of_nvlink(
    capfd: pytest.CaptureFixture[str],
) -> None:
    words = ["-arch=sm_80", "a.cubin", "-o", "x", "-o", "y"]
    warning = (
        "pylink warning : incompatible redefinition for option 'output-file', the last value of "
        "this option was used\n"
    )
    # As nvlink has it: no option for warnings counts, and the target is not named.
    for more in ([], ["-w"], ["-Werror"], ["-disable-infos"], ["-report-arch"]):
        assert run(capfd, *words, *more) == (0, warning)
    assert run(capfd, *words, "--diag-suppress=option-redefined") == (0, "")
    assert run(capfd, *words, "-w", "--output_mode=text") == (0, "")
    status, text = run(capfd, *words, "-Werror", "--output_mode=text")
    assert (status, "Error: incompatible redefinition" in text) == (255, True)
    assert run(capfd, *words, "--diag-error=110")[0] == 255


@pytest.mark.parametrize(
    "option",
    [option for option in OPTIONS if not option.short and option.recorded == NEVER],
    ids=lambda option: option.long,
)
def test_own_options_work_with_one_dash(option: Option) -> None:
    for dashes in ("-", "--"):
        for name in (option.long.replace("-", "_"), option.long.replace("_", "-")):
            assert SPELLINGS[f"{dashes}{name}"] is option


def test_the_name_that_a_remark_ends_with_is_taken(capfd: pytest.CaptureFixture[str]) -> None:
    words = ["-arch=sm_80", "a.cubin", "-o", "o", "--output_mode=text"]
    _, text = run(capfd, *words, "--pass-remarks-analysis=.*")
    assert "[-pass-remarks-analysis=" in text
    assert run(capfd, *words, "-pass-remarks-analysis=.*") == (0, text)


def test_options_of_the_environment_come_first(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYLINK_OPTIONS", "-arch=sm_80 --Map map --write-if-changed")
    assert run(capfd, "a.cubin", "-o", "o") == (0, "")
    assert (tmp_path / "map").exists()
    monkeypatch.setattr(sys, "argv", ["/cuda/bin/nvlink"])
    (tmp_path / "map").unlink()
    assert run(capfd, "a.cubin", "-o", "o") == (0, "")
    assert (tmp_path / "map").exists()


def test_files_beside_the_output_are_named_after_the_link(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    side = [option for option in OPTIONS if option.attribute in SIDE_OPTIONS]
    assert {option.long for option in side} >= {"Map", "sarif-output", "depfile", "diag-log"}
    words = [f"--{option.long}=%o.%a.{option.long}%%%x" for option in side]
    assert run(capfd, "-arch=sm_80", "a.cubin", "-o", "out", *words) == (0, "")
    made = {path.name for path in tmp_path.glob("out.*")}
    assert made == {f"out.sm_80.{option.long}%%x" for option in side}


def test_what_names_a_file_beside_the_output_is_marked_so() -> None:
    """Files that options have the link write, but for nvlink's own, which are taken as given."""
    read = {"ptxas-path", "options-file", "output-file", "section-folder"}
    writing = {
        option.long
        for option in OPTIONS
        if option.built
        and option.takes != FLAG
        and option.recorded == NEVER
        and HELP[option.long][0] == "<file>"
        and HELP[option.long][1].startswith("Write")
    }
    assert writing - read == {option.long for option in OPTIONS if option.attribute in SIDE_OPTIONS}


def test_a_terminal_gets_text_and_a_pipe_gets_lines() -> None:
    def on_a_terminal(*program: str, word: str) -> str:
        mine, theirs = pty.openpty()
        words = [*program, word]
        with subprocess.Popen(words, stderr=theirs, stdout=subprocess.DEVNULL) as process:
            os.close(theirs)
            shown = b""
            try:
                while chunk := os.read(mine, 4096):
                    shown += chunk
            except OSError:  # the other end is closed
                pass
            process.wait()
        os.close(mine)
        return shown.decode()

    pylink = (sys.executable, "-m", "pylink", "--color=never")
    assert on_a_terminal(*pylink, word="-bogus").startswith("Command-line error: Unknown option")
    asked = (*pylink, "--diagnostics_format=nvlink")
    assert on_a_terminal(*asked, word="-bogus") == "pylink fatal   : Unknown option 'bogus'\r\n"
    program = "import sys; sys.argv[0] = 'nvlink'; from pylink.startup.program import run; run()"
    nvlink = (sys.executable, "-c", program)
    assert on_a_terminal(*nvlink, word="-bogus") == "nvlink fatal   : Unknown option 'bogus'\r\n"
    piped = subprocess.run([*pylink, "-bogus"], capture_output=True, text=True, check=False)
    assert piped.stderr == "pylink fatal   : Unknown option 'bogus'\n"
