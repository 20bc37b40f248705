"""A link that is ended by a signal: at any moment without a word, and with nothing left behind."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.cubin_builder import one_kernel
from helpers.installed import Installed, build_scripts

import pylink
from pylink.command.cli import main
from pylink.files.atomic import WholeFile

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
from pylink.startup import program
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
    monkeypatch.setattr(f"pylink.files.atomic.os.{call}", interrupted)
    with pytest.raises(KeyboardInterrupt):
        file.commit()
    monkeypatch.undo()
    assert (tmp_path / "o").read_text() == ("new" if call == "rename" else "old")
    assert [path.name for path in tmp_path.iterdir()] == ["o"]


def take_interrupts() -> None:
    """Have an interrupt end the process, though a shell in the background ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interrupt_at_any_time_of_the_program(tmp_path: Path) -> None:
    """The interpreter itself has words for an interrupt, until it has begun with pylink."""
    installed = Installed(tmp_path / "prefix", build_scripts(tmp_path))
    installed.link()  # makes the bundle
    begun, long = time.perf_counter(), 1.0
    for _ in range(5):
        # The least time: if others use the machine, interrupts come early rather than too late.
        installed.link()
        long = min(long, time.perf_counter() - begun)
        begun = time.perf_counter()
    chance = random.Random(7)
    environment = {**os.environ, "PYTHONPATH": installed.path}
    ended = []
    for _ in range(200):
        process = subprocess.Popen(
            [installed.program, "-arch=sm_80", "a.cubin", "-o", "out.cubin"],
            cwd=installed.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=take_interrupts,  # noqa: PLW1509 -- no threads here
        )
        time.sleep(chance.uniform(0, long))
        process.send_signal(signal.SIGINT)
        assert process.communicate() == (b"", b"")
        ended.append(process.returncode)
    assert set(ended) <= {0, -signal.SIGINT}
    assert ended.count(-signal.SIGINT) > 50


@pytest.mark.parametrize("blocked", [True, False])
def test_who_blocks_interrupts_keeps_them_blocked(tmp_path: Path, blocked: bool) -> None:
    installed = Installed(tmp_path / "prefix", build_scripts(tmp_path))
    program = installed.package / "startup" / "program.py"
    shown = "    print(_signal.pthread_sigmask(_signal.SIG_BLOCK, ()))\n    status = main("
    program.write_text(program.read_text().replace("    status = main(", shown))
    how = signal.SIG_BLOCK if blocked else signal.SIG_UNBLOCK
    environment = {**os.environ, "PYTHONPATH": installed.path}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # or no bundle is made
    for start in ("from the script\n", ""):
        done = subprocess.run(
            [installed.program, "-arch=sm_80", "a.cubin", "-o", "out.cubin"],
            cwd=installed.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            preexec_fn=lambda: signal.pthread_sigmask(how, [signal.SIGINT]) and None,
        )
        assert done.stdout == start + ("{2}\n" if blocked else "set()\n")
