"""Completions and manual pages: every option and command is there, and the tools take them."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from pylink.command import completion, manual
from pylink.command.optionhelp import command_options, link_options
from pylink.options.commands import COMMANDS
from pylink.options.table import OPTIONS

BASH = r"""
source ./script
COMP_WORDS=("$@")
COMP_CWORD=$(( $# - 1 ))
_pylink
printf '%s\n' "${COMPREPLY[@]}"
"""


def complete(folder: Path, *words: str) -> set[str]:
    """What bash offers for the last word."""
    (folder / "script").write_text(completion.bash_script())
    done = subprocess.run(
        ["bash", "-c", BASH, "bash", "pylink", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return set(done.stdout.split())


def test_bash_completes_commands_options_values_and_files(tmp_path: Path) -> None:
    (tmp_path / "input.cubin").touch()
    assert complete(tmp_path, "in") == {"inspect", "input.cubin"}
    assert complete(tmp_path, "--diag-sup") == {"--diag-suppress"}
    assert complete(tmp_path, "-arch", "sm_9") == {"sm_90", "sm_90a"}
    assert complete(tmp_path, "a.cubin", "--color", "=", "a") == {"auto", "always"}
    assert complete(tmp_path, "a.cubin", "--color", "=") == {"auto", "always", "never"}
    assert complete(tmp_path, "inspect", "--d") == {"--diff"}
    assert complete(tmp_path, "inspect", "inp") == {"input.cubin"}
    assert complete(tmp_path, "-o", "x", "inp") == {"input.cubin"}
    assert complete(tmp_path, "ded") == {"dedup", "dedup-index", "dedup-ask", "dedup-compare"}
    assert complete(tmp_path, "dedup", "i") == {"index", "input.cubin"}
    for words in (["dedup", "index"], ["dedup-index"]):
        assert complete(tmp_path, *words, "--t") == {"--targets"}
    assert complete(tmp_path, "dedup", "index", "inp") == {"input.cubin"}


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_every_option_and_command_is_completed(shell: str) -> None:
    script = completion.SHELLS[shell]()
    words = set(re.findall(r"[\w-]+", script))
    for option in OPTIONS:
        if option.built:
            assert {f"--{option.long}", option.long} & words
    for name in COMMANDS:
        assert name in words
        for word in command_options(name):
            assert {word.spellings[0], word.spellings[0].lstrip("-")} & words
    assert shlex.split(script, comments=True)  # every quote is closed


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_a_shell_that_is_here_takes_its_script(shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "script").write_text(completion.SHELLS[shell]())
    subprocess.run([program, "-n", tmp_path / "script"], check=True)


@pytest.mark.parametrize("name", COMMANDS)
def test_manual_pages_are_whole(name: str) -> None:
    page = manual.manual() if name == "link" else manual.command_manual(name)
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not installed")
    words = [groff, "-man", "-Tascii", "-ww", "-P-c", "-P-b", "-P-u", "-rLL=200n"]
    done = subprocess.run(words, input=page, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    text = " ".join(done.stdout.split())
    for word in link_options() if name == "link" else command_options(name):
        assert word.spellings[0] in text
        assert " ".join(word.about.split()[:6]) in text


def test_the_commands_print_them(capsys: pytest.CaptureFixture[str]) -> None:
    for shell, script in completion.SHELLS.items():
        assert completion.main([shell]) == 0
        assert capsys.readouterr().out == script()
    assert manual.main([]) == 0
    assert capsys.readouterr().out == manual.manual()
    assert manual.main(["inspect"]) == 0
    assert capsys.readouterr().out == manual.command_manual("inspect")
    assert completion.main(["tcsh"]) == 2
    assert manual.main(["bogus"]) == 2
