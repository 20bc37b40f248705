"""Files that are pipes, devices, endless or full of holes: refused with a reason, never waited for.

The limits of a link hold for every command that reads a file.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from helpers.archive_builder import gnu, thin, write
from helpers.cubin_builder import one_kernel

from pylink.command.cli import main
from pylink.files import reading as incoming
from pylink.files import special

# Words before the file, and the exit status of trouble.
COMMANDS = {
    "inspect": (["inspect"], 2),
    "inspect second": (["inspect", "--diff", "a.cubin"], 2),
    "dedup": (["dedup"], 1),
    "remarks": (["remarks"], 1),
    "report": (["report"], 1),
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(incoming, "WRITER_SECONDS", 0.05)
    monkeypatch.setattr(incoming, "SILENT_SECONDS", 0.05)
    monkeypatch.setattr(special, "PIPE_SECONDS", 0.05)
    monkeypatch.delenv("LIBRARY_PATH", raising=False)
    Path("a.cubin").write_bytes(one_kernel().build())
    os.mkfifo("fifo")
    with Path("holes").open("wb") as stream:
        stream.truncate(1 << 40)
    with Path("cubin_of_holes.cubin").open("wb") as stream:
        stream.write(one_kernel().build())
        stream.truncate(1 << 40)
    return tmp_path


def link(*words: str) -> int:
    return main(["-arch=sm_80", *words, "-o", "out"])


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("/dev/zero", "it is neither a file nor a pipe"),
        ("fifo", "no process writes to the pipe for 0 seconds"),
        ("/proc/kmsg", None),
        ("holes", None),
        ("cubin_of_holes.cubin", None),
        ("gone", "No such file or directory"),
    ],
)
def test_commands_end_with_a_reason(
    command: str, file: str, reason: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    words, status = COMMANDS[command]
    assert main([*words, file]) == status
    message = capsys.readouterr().err
    assert len(message.splitlines()) == 1
    assert file in message
    if reason is not None:
        assert reason in message


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "dedup"])
def test_commands_that_take_no_folder_say_so(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words, status = COMMANDS[command]
    assert main([*words, "."]) == status
    (message,) = capsys.readouterr().err.splitlines()
    assert message.endswith("Is a directory")


@pytest.mark.parametrize("command", ["inspect", "dedup", "remarks", "report"])
def test_commands_read_no_more_than_a_link_does(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of what they cannot use, no more than its beginning."""
    sizes: list[int] = []
    real = incoming.Incoming.read

    def watched(stream: incoming.Incoming, size: int) -> bytes:
        data = real(stream, size)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(incoming.Incoming, "read", watched)
    with Path("zeros").open("wb") as stream:
        stream.truncate(1 << 30)
    assert main([command, "zeros"]) != 0
    assert sum(sizes) <= 2 * incoming.HEAD_SIZE
    assert "zeros" in capsys.readouterr().err


def test_an_input_without_a_writer(capsys: pytest.CaptureFixture[str]) -> None:
    assert link("fifo") == 1
    assert capsys.readouterr().err == (
        "pylink fatal   : Reading 'fifo' failed: no process writes to the pipe for 0 seconds\n"
    )


def test_a_writer_that_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    writer = os.open("fifo", os.O_RDWR)
    try:
        assert link("fifo") == 1
    finally:
        os.close(writer)
    assert "nothing came through the pipe for 0 seconds" in capsys.readouterr().err


def test_a_slow_writer_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incoming, "WRITER_SECONDS", 10.0)
    monkeypatch.setattr(incoming, "SILENT_SECONDS", 10.0)
    data = Path("a.cubin").read_bytes()

    def put() -> None:
        time.sleep(0.05)
        with Path("fifo").open("wb", buffering=0) as stream:
            for part in (data[:10], data[10:500], data[500:]):
                stream.write(part)
                time.sleep(0.03)

    thread = threading.Thread(target=put)
    thread.start()
    assert link("fifo") == 0
    thread.join()


def test_a_pipe_of_the_shell() -> None:
    """Whose writer may be gone before anyone reads."""
    command = f"{sys.executable} -m pylink -arch=sm_80 <(cat a.cubin) @<(echo -w) -o out"
    subprocess.run(["bash", "-c", command], check=True)
    empty = f"sleep 0.2; {sys.executable} -m pylink -arch=sm_80 <(true) -o out"
    started = time.monotonic()
    done = subprocess.run(["bash", "-c", empty], capture_output=True, text=True, check=False)
    assert (done.returncode, time.monotonic() - started < 8) == (255, True)
    assert "is empty" in done.stderr


@pytest.mark.parametrize("words", [["@fifo"], ["-optf", "fifo"]])
def test_options_files(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert link("a.cubin", *words) == 1
    assert "Reading 'fifo' failed: no process writes to the pipe" in capsys.readouterr().err


@pytest.mark.parametrize("file", ["/proc/kmsg", "/dev/zero", "holes"])
@pytest.mark.parametrize("form", ["@{}", "-optf={}", "{}"])
def test_what_no_link_reads(file: str, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert link("a.cubin", form.format(file)) != 0
    assert file in capsys.readouterr().err


def test_libraries(capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe called so, and archives that name one."""
    os.rename("fifo", "libfifo.a")
    assert link("a.cubin", "-L.", "-lfifo") == 1
    assert "no process writes to the pipe" in capsys.readouterr().err
    os.rename("libfifo.a", "fifo")
    write(Path(), {"libthin.a": thin(["fifo"]), "in.a": thin(["libthin.a"])})
    for words in (["-L.", "-lthin"], ["libthin.a"], ["in.a"], ["--whole-archive", "libthin.a"]):
        assert link("a.cubin", *words) == 1
        assert "of the thin archive cannot be read: it is not a regular file" in (
            capsys.readouterr().err
        )


def test_a_depfile_of_what_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It names what was read, and reads nothing again."""
    write(Path(), {"t.a": thin(["a.cubin"]), "lib.a": gnu([("x", b"text")])})
    from pylink import pipeline  # noqa: PLC0415 -- to be replaced
    from pylink.phases.write import write as real  # noqa: PLC0415 -- as it was

    def removing(*arguments: object) -> None:
        real(*arguments)  # type: ignore[arg-type]
        for name in ("t.a", "a.cubin", "lib.a", "fifo"):
            Path(name).unlink()

    monkeypatch.setattr(pipeline, "write", removing)
    assert link("--whole-archive", "t.a", "lib.a", "--depfile=d") == 0
    assert Path("d").read_text().splitlines()[0] == "out: t.a a.cubin lib.a"


@pytest.mark.parametrize("option", ["-o", "--Map", "--diag-log", "--time-trace", "--depfile"])
def test_outputs_that_nobody_reads(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(
        ["-arch=sm_80", "a.cubin", *([] if option == "-o" else ["-o", "out"]), option, "fifo"]
    )
    assert "fifo" in capsys.readouterr().err
