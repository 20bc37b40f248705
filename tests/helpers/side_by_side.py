"""Runs the same link with nvlink and with pylink: a command line in one folder, or cubins alone."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from helpers import oracle
from helpers.compare import compare
from helpers.keywords import keywords

from pylink.api.linker import link
from pylink.command.cli import main

# The output files of nvlink and of pylink, in the folder.
THEIRS, OURS = "theirs.out", "ours.out"


@dataclass(frozen=True)
class Said:
    """The exit status and the printed lines, without the name of the tool in front."""

    code: int
    lines: list[str]


def nvlink(folder: Path, words: Sequence[str]) -> Said:
    """Run nvlink."""
    done = oracle.run_nvlink([*words, "-o", THEIRS], folder)
    return _result_of(done.code, done.stdout + done.stderr, "nvlink")


def pylink(folder: Path, words: Sequence[str], *, name: str = "nvlink") -> Said:
    """Run pylink under a name."""
    text = io.StringIO()
    before = os.getcwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stderr(text), contextlib.redirect_stdout(text):
            code = main([*words, "-o", OURS], tool=name)
    finally:
        os.chdir(before)
    return _result_of(code, text.getvalue(), name)


def own_messages(folder: Path, words: Sequence[str]) -> str:
    """Return the messages of pylink in its own format, without blank lines."""
    options = ["--diagnostics_format=text", "--brief-diagnostics=true", "--no_wrap_diagnostics"]
    return "\n".join(pylink(folder, [*words, *options], name="pylink").lines)


def output_differences(folder: Path, words: Sequence[str]) -> list[str]:
    """Return how pylink's output of a link differs from nvlink's; both stay in the folder.

    Assert that both link, and print the same.
    """
    expected = nvlink(folder, words)
    actual = pylink(folder, [*words, "--merc-dedup=off", f"--nvlink-version={oracle.current()}"])
    assert expected == actual
    assert expected.code == 0, expected
    return compare((folder / OURS).read_bytes(), (folder / THEIRS).read_bytes())


def differences(cubins: Sequence[bytes], arch: str, options: Sequence[str]) -> list[str]:
    """Return how pylink's link of cubins differs from nvlink's, which must succeed."""
    expected = oracle.link(cubins, arch, options)
    assert expected.image is not None, expected.stderr
    actual = link(cubins, arch=f"sm_{arch}", **keywords(options))
    return compare(bytes(actual.image), expected.image)


def _result_of(code: int, text: str, name: str) -> Said:
    """Return the result of a tool called `name`."""
    return Said(code, [line.removeprefix(f"{name} ") for line in text.splitlines()])
