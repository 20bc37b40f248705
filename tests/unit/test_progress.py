"""Progress bars: on a terminal, after a second, and gone when the work is done."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

from helpers import demo

from pylink.terminal import progress

# Four things that take so many seconds each, for people with the patience of a fifth of one.
SCRIPT = """
import sys, time
from pylink.terminal import progress
progress.SHOW_AFTER = 0.2
with progress.Progress("counting", 4) as shown:
    for number in range(4):
        time.sleep(float(sys.argv[1]))
        shown.advance(text=f"number {number}")
"""


def on_terminal(*words: str) -> str:
    """What a program writes to a terminal that is its standard error."""
    ours, theirs = pty.openpty()
    done = subprocess.Popen(
        [sys.executable, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            read = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not read:
            break
        said += read
    os.close(ours)
    assert done.wait() == 0
    return said.decode()


def test_long_work_is_shown_on_a_terminal() -> None:
    assert progress.SHOW_AFTER == 1.0
    said = on_terminal("-c", SCRIPT, "0.12")
    assert "counting: number 1" in said
    assert "100%" in said


def test_short_work_is_not() -> None:
    assert on_terminal("-c", SCRIPT, "0.001") == ""


def test_without_a_terminal_nothing_is_shown() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, "0.12"], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_without_rich_the_work_goes_on() -> None:
    without = "import sys; sys.modules['rich.console'] = None\n"
    assert on_terminal("-c", without + SCRIPT, "0.12") == ""


def test_a_link_that_measures_growth_shows_how_far_it_is(tmp_path: Path) -> None:
    script = (
        "import sys; from pylink.terminal import progress; progress.SHOW_AFTER = 0.0;"
        "from pylink.startup.program import run; sys.exit(run())"
    )
    words = ["-arch=sm_100", "-o", str(tmp_path / "o"), "--profile-aprof", str(tmp_path / "a")]
    cubins = [str(name) for name in demo.cubins("sm_100")]
    said = on_terminal("-c", script, *words, *cubins)
    assert "linking" in said
    assert "measuring growth" in said
    assert "inputs" in said.partition("measuring growth")[2]
