"""A link that is ended by a signal: at any moment without a word, and with nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.cubin_builder import one_kernel

import pylink
from pylink.command.cli import main
from pylink.outputs.wholefile import WholeFile

# Sends itself the signal at one of the moments that the interpreter reports: each import, each
# file that is opened, linked, renamed or removed. Without one, says how many there are.
PROGRAM = """
import os, sys
number, moment = int(sys.argv[1]), int(sys.argv[2])
sys.argv[1:] = sys.argv[3:]
seen = 0
def hook(event, arguments):
    global seen
    if event in ("import", "open", "os.link", "os.rename", "os.remove"):
        seen += 1
        if seen == moment:
            os.kill(os.getpid(), number)
from pylink.command import program
{before}
sys.addaudithook(hook)
try:
    program.run()
finally:
    print(seen)
"""
COUNTED = PROGRAM.format(before="import atexit")
ENDED = PROGRAM.format(before="")

OF_OUTPUTS = 12


def words(folder: Path) -> list[str]:
    options = [f"--Map={folder / 'map'}", f"--diag-log={folder / 'log'}", f"--depfile={folder}/d"]
    return ["-arch=sm_80", str(folder / "a.cubin"), "-o", str(folder / "out"), *options]


def started(
    program: str, number: int, moment: int, folder: Path
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, str(number), str(moment), *words(folder)]
    # Programs in the background of a shell inherit that interrupts are ignored.
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("existing", [True, False])
def test_a_signal_at_any_moment(tmp_path: Path, number: int, existing: bool) -> None:
    (tmp_path / "a.cubin").write_bytes(one_kernel().build())
    image = pylink.link([tmp_path / "a.cubin"], arch="sm_80").image
    done = started(COUNTED, number, 0, tmp_path)
    assert done.returncode == 0
    moments = int(done.stdout)
    outputs = {"out", "map", "log", "d"}
    ended = 0
    # Most of them are imports, which only interrupts could disturb; the last are the outputs'.
    early = range(1, moments - OF_OUTPUTS, moments // 6) if number == signal.SIGINT else ()
    for moment in [*early, *range(moments - OF_OUTPUTS, moments + 1)]:
        for name in outputs:
            path = tmp_path / name
            path.unlink(missing_ok=True)
            if existing:
                path.write_text("old")
        done = started(ENDED, number, moment, tmp_path)
        assert done.stderr == ""
        ended += done.returncode == -number
        if (tmp_path / "out").exists():
            assert (tmp_path / "out").read_bytes() in ((b"old", image) if existing else (image,))
        left = {path.name for path in tmp_path.iterdir()} - outputs - {"a.cubin"}
        if left:
            # Between two calls on an old file; whoever writes it next finds what is left.
            assert existing
            assert len(left) == 1
            assert main(words(tmp_path)) == 0
            assert {path.name for path in tmp_path.iterdir()} == outputs | {"a.cubin"}
    assert ended >= OF_OUTPUTS


# For sitecustomize.py: an interrupt at the first event of a kind that names some text.
PLANTED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
def hook(event, arguments):
    if event == {event!r} and {name!r} in str(arguments[0]):
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(hook)
"""


@pytest.mark.parametrize(
    ("event", "name"), [("import", "pylink"), ("import", "pylink.command"), ("open", "__init__")]
)
def test_an_interrupt_while_the_script_looks_for_pylink(
    tmp_path: Path, event: str, name: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(PLANTED.format(event=event, name=name))
    script = Path(__file__).parents[2] / "scripts" / "pylink-python"
    done = subprocess.run(
        [sys.executable, str(script), "--version"],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.parametrize("call", ["link", "rename"])
def test_an_interrupt_behind_a_call_is_no_internal_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Who calls the linker from Python has interrupts as exceptions."""
    real = getattr(os, call)

    def interrupted(*arguments: object, **options: object) -> None:
        real(*arguments, **options)
        raise KeyboardInterrupt

    (tmp_path / "o").write_text("old")
    file = WholeFile(str(tmp_path / "o"))
    file.write(b"new")
    monkeypatch.setattr(f"pylink.outputs.wholefile.os.{call}", interrupted)
    with pytest.raises(KeyboardInterrupt):
        file.commit()
    monkeypatch.undo()
    assert (tmp_path / "o").read_text() == ("new" if call == "rename" else "old")
    assert [path.name for path in tmp_path.iterdir()] == ["o"]
