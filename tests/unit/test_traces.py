"""Tracebacks of links that failed: the caller's frames and one of pylink's, but all in logs."""

from __future__ import annotations

import asyncio
import io
import logging
import re
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from rich.console import Console
from rich.traceback import Traceback

import pylink

MISSING = "nowhere.cubin"


class Unwanted:
    def is_set(self) -> bool:
        return True


def link() -> object:
    return pylink.link([MISSING], arch="sm_90a")


def complete() -> object:
    linker = pylink.Linker(arch="sm_90a")
    linker._inputs.append((MISSING, None))  # a file that was there when it was added
    return linker.complete()


# What users call, the name of the frame that is shown, and what it does.
CALLS: dict[str, tuple[str, Callable[[], object]]] = {
    "link": ("link", link),
    "cancelled": ("link", lambda: pylink.link([MISSING], arch="sm_90a", cancel=Unwanted())),
    "constructor": ("__init__", lambda: pylink.Linker(arch="bogus")),
    "add": ("add", lambda: pylink.Linker(arch="sm_90a").add(MISSING)),
    "add_file": ("add_file", lambda: pylink.Linker(arch="sm_90a").add_file(MISSING)),
    "complete": ("complete", complete),
    "alink": ("alink", lambda: asyncio.run(pylink.alink([MISSING], arch="sm_90a"))),
    "dlink": ("dlink", lambda: pylink.dlink([MISSING], archs=["sm_90a"])),
    "link_many": (
        "link_many",
        lambda: pylink.link_many([pylink.LinkJob([MISSING], arch="sm_90a")], cancel=Unwanted()),
    ),
}


def failed(name: str) -> BaseException:
    """What the call raises."""
    with pytest.raises((pylink.LinkError, pylink.LinkCancelled)) as caught:
        CALLS[name][1]()
    return caught.value


def shown(error: BaseException) -> list[str]:
    """The functions of pylink that have frames which are not hidden, as rich finds them."""
    text = io.StringIO()
    trace = Traceback.from_exception(type(error), error, error.__traceback__)
    Console(file=text, width=200).print(trace)
    lines = text.getvalue().splitlines()
    return [line.split()[-2] for line in lines if "/src/pylink/" in line and " in " in line]


@pytest.mark.parametrize("name", CALLS)
def test_one_frame_of_pylink_is_shown(name: str) -> None:
    error = failed(name)
    assert shown(error) == [CALLS[name][0]]
    hidden = traceback.extract_tb(error.__traceback__)
    assert sum("/src/pylink/" in frame.filename for frame in hidden) > 1


def test_logs_have_all_frames() -> None:
    text = io.StringIO()
    logger = logging.Logger("user")
    logger.addHandler(logging.StreamHandler(text))
    try:
        link()
    except pylink.LinkError:
        logger.exception("it failed")
    assert "in run_link" in text.getvalue()
    assert "FileNotFoundError" in text.getvalue()


def test_an_error_of_the_caller_keeps_its_frames() -> None:
    """A link in an except clause: what was caught there is the caller's."""

    def fail() -> None:
        try:
            raise KeyError("mine")
        except KeyError:
            link()

    with pytest.raises(pylink.LinkError) as caught:
        fail()
    mine = caught.value.__context__
    while mine is not None and not isinstance(mine, KeyError):
        mine = mine.__context__
    assert mine is not None
    assert mine.__traceback__ is not None
    assert "__tracebackhide__" not in mine.__traceback__.tb_frame.f_locals


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InteractiveShell:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    made = InteractiveShell.instance()
    made.history_manager = None
    return made


def test_ipython_shows_the_cell_and_one_frame(shell: InteractiveShell) -> None:
    cell = f"import pylink\ndef build():\n    pylink.link([{MISSING!r}], arch='sm_90a')\nbuild()"
    try:
        with capture_output() as output:
            shell.run_cell(cell)
    finally:
        InteractiveShell.clear_instance()
    text = re.sub(r"\x1b\[[\d;]*m", "", output.stdout)
    assert text.count("Cell In[") == 2
    assert text.count("src/pylink/") == 1
    assert "Could not open input file 'nowhere.cubin'" in text
    assert "FileNotFoundError" not in text


def test_pytest_shows_one_frame(tmp_path: Path) -> None:
    (tmp_path / "test_build.py").write_text(
        f"import pylink\n\n\ndef test_build():\n    pylink.link([{MISSING!r}], arch='sm_90a')\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=short"]
    done = subprocess.run(
        [*command, "test_build.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    frames = [line for line in done.stdout.splitlines() if ": in " in line]
    assert [line.split(": in ")[1] for line in frames] == ["test_build", "link"]
    assert "Could not open input file 'nowhere.cubin'" in done.stdout
