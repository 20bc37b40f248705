"""The processes that measure: a Launcher starts the timed programs, a Resident links itself.

Each reads a JSON object per line and answers with one. Their programs are `launcher.py` and
`resident.py`, which import little, since their memory would be measured, too.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from dataclasses import dataclass

from pylink.bench import launcher, resident
from pylink.subtools.process import ends_within, start_helper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from subprocess import Popen
    from typing import Any

    from pylink.bench.resident import Request


# Seconds that a process has to end if the measurement is interrupted; then it is killed.
END_TIMEOUT_S = 2.0


@dataclass
class Run:
    """One measured run: wall and processor time in seconds, peak resident memory in bytes.

    `output` is what a started program wrote to standard output; empty for a call.
    """

    seconds: float
    cpu: float
    rss: int
    output: str


class RunFailed(RuntimeError):
    """A run failed; the text says why."""


class Helper:
    """A process that runs `launcher.py` or `resident.py`; the first request starts it."""

    def __init__(
        self,
        program: str,
        argv: Sequence[str] = (),
        directory: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._command = [sys.executable, "-I", "-S", program, *argv]
        self._directory = directory
        self._environment = environment
        self._process: Popen[str] | None = None
        self._is_working = False  # true while a request has no answer

    def ask(self, request: object) -> dict[str, Any]:
        """Send a request and return the answer; RunFailed if the process ends without one."""
        if self._process is None:
            self._process = start_helper(self._command, self._directory, self._environment)
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        self._is_working = True
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:  # the process ended after the last answer
            line = ""
        self._is_working = False
        if not line:
            self._process = None
            with contextlib.suppress(BrokenPipeError):  # what was not written is lost
                process.stdin.close()
            with process:  # closes the other pipe
                raise RunFailed(f"its process ended with status {process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process, and the processes that it started."""
        process, self._process = self._process, None
        if process is None:
            return
        if self._is_working:
            _end_group(process.pid, signal.SIGTERM)
        if not ends_within(process, END_TIMEOUT_S if self._is_working else None):
            _end_group(process.pid, signal.SIGKILL)
            ends_within(process, None)


def _end_group(group: int, signal_number: int) -> None:
    """Send a signal to a process group, if it exists."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal_number)


class Launcher(Helper):
    """Runs commands one after the other, each as a child of a small process.

    `environment` is that of the commands (default: that of this process).
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        super().__init__(launcher.__file__, environment=environment)

    def run(self, argv: Sequence[str], cwd: Path | str) -> Run:
        """Run `argv` in `cwd`; RunFailed if it cannot be started or fails."""
        answer = self.ask({"argv": list(argv), "cwd": str(cwd)})
        if answer["code"]:
            raise RunFailed(answer["errors"] or f"exit status {answer['code']}")
        return Run(answer["seconds"], answer["cpu"], answer["rss"], answer["output"])


class Resident(Helper):
    """A process that repeats one kind of link: COPY, API or NVJITLINK of `resident`.

    `directory` is its working directory.
    """

    def __init__(self, kind: str, directory: str) -> None:
        super().__init__(resident.__file__, [kind, json.dumps(sys.path)], directory)

    def run(self, request: Request) -> Run:
        """Link once; RunFailed if that fails."""
        answer = self.ask(request)
        if "failed" in answer:
            raise RunFailed(answer["failed"])
        return Run(answer["seconds"], answer["cpu"], answer["rss"], "")
