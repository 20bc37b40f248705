"""A small process that starts the measured ones.

The peak memory that Linux reports for a process counts that of the process it was forked from, so
a test session cannot measure what it starts itself. Run as a script, this file reads one JSON
object per line, `{"argv": [...], "cwd": path}`, runs that and answers `{"seconds", "rss", "code",
"output"}`: wall time from start to end, peak resident bytes, exit status and standard output.
"""

from __future__ import annotations

import json
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Run:
    """One measured process."""

    __slots__ = ("output", "rss", "seconds")

    def __init__(self, seconds: float, rss: int, output: str) -> None:
        self.seconds = seconds
        self.rss = rss
        self.output = output


class Launcher:
    """Runs commands one after the other, from a process of its own."""

    def __init__(self) -> None:
        import subprocess  # noqa: PLC0415 - not in the process that starts the measured ones

        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, argv: Sequence[str], cwd: Path) -> Run:
        """Run `argv` in `cwd`; RuntimeError when it fails."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"argv": list(argv), "cwd": str(cwd)}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if answer["code"]:
            raise RuntimeError(f"exit status {answer['code']}: {' '.join(argv)[:200]}")
        return Run(answer["seconds"], answer["rss"], answer["output"])

    def close(self) -> None:
        self._process.communicate()


def measure(argv: list[str]) -> dict[str, object]:
    """Run one command with its standard output in a pipe."""
    reader, writer = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, writer, 1)]
    start = time.perf_counter()
    child = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions)
    os.close(writer)
    with open(reader, "rb") as stream:
        output = stream.read()
    _, status, usage = os.wait4(child, 0)
    return {
        "seconds": time.perf_counter() - start,
        "rss": usage.ru_maxrss * 1024,
        "code": os.waitstatus_to_exitcode(status),
        "output": output.decode(errors="replace"),
    }


def serve() -> None:
    """Answer requests until standard input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        os.chdir(request["cwd"])
        print(json.dumps(measure(request["argv"])), flush=True)


if __name__ == "__main__":
    serve()
