"""A small process that starts the measured ones.

The peak memory that Linux reports for a process counts that of the process it was forked from, so
a large process cannot measure what it starts itself. Run as a script, this file reads one JSON
object per line, `{"argv": [...], "cwd": path}`, runs that and answers `{"seconds", "cpu", "rss",
"code", "output", "said"}`: wall time from start to end, processor time of user and system, peak
resident bytes, exit status, standard output, and the end of what it wrote to standard error.
"""

from __future__ import annotations

import json
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

# Bytes of standard error that are kept: the reason stands at the end.
SAID = 1 << 12


class Run:
    """One measured process: times in seconds, peak memory in bytes, what it wrote."""

    __slots__ = ("cpu", "output", "rss", "seconds")

    def __init__(self, seconds: float, cpu: float, rss: int, output: str) -> None:
        self.seconds = seconds
        self.cpu = cpu
        self.rss = rss
        self.output = output


class Failed(RuntimeError):
    """A process that did not do what it was started for; the text says why."""


class Launcher:
    """Runs commands one after the other, from a process of its own.

    They have `environment`, that of this process unless told.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        import subprocess  # noqa: PLC0415 - not in the process that starts the measured ones

        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def run(self, argv: Sequence[str], cwd: Path | str) -> Run:
        """Run `argv` in `cwd`; Failed when it cannot be started or fails."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"argv": list(argv), "cwd": str(cwd)}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if answer["code"]:
            raise Failed(answer["said"] or f"exit status {answer['code']}")
        return Run(answer["seconds"], answer["cpu"], answer["rss"], answer["output"])

    def close(self) -> None:
        self._process.communicate()


def measure(argv: list[str]) -> dict[str, object]:
    """Run one command with its standard output in a pipe and its errors in a file of memory."""
    reader, writer = os.pipe()
    said = os.memfd_create("said")
    actions = [(os.POSIX_SPAWN_DUP2, writer, 1), (os.POSIX_SPAWN_DUP2, said, 2)]
    start = time.perf_counter()
    try:
        child = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions)
    except OSError as error:
        os.close(reader)
        os.close(said)
        return {"code": 127, "said": f"{argv[0]}: {error.strerror}"}
    finally:
        os.close(writer)
    with open(reader, "rb") as stream:
        output = stream.read()
    _, status, usage = os.wait4(child, 0)
    seconds = time.perf_counter() - start
    with open(said, "rb") as errors:
        errors.seek(max(errors.seek(0, os.SEEK_END) - SAID, 0))
        text = errors.read().decode(errors="replace").strip()
    return {
        "seconds": seconds,
        "cpu": usage.ru_utime + usage.ru_stime,
        "rss": usage.ru_maxrss * 1024,
        "code": os.waitstatus_to_exitcode(status),
        "output": output.decode(errors="replace"),
        "said": text,
    }


def serve() -> None:
    """Answer requests until standard input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        os.chdir(request["cwd"])
        sys.stdout.write(json.dumps(measure(request["argv"])) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
