"""The processes that measure: one starts what is timed, others stay and do it themselves.

Each takes a JSON object a line and answers one. The programs are `launcher.py` and `resident.py`,
which import next to nothing: what they hold would count.
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


# Seconds that a process has to end when the measurement is over before its time.
PATIENCE = 2.0


@dataclass
class Run:
    """What was measured once: times in seconds, peak memory in bytes, what it wrote."""

    seconds: float
    cpu: float
    rss: int
    output: str


class Failed(RuntimeError):
    """A process that did not do what it was asked for; the text says why."""


class Helper:
    """A process that runs one of the two programs, started with the first request."""

    def __init__(
        self,
        program: str,
        argv: Sequence[str] = (),
        folder: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._command = [sys.executable, "-I", "-S", program, *argv]
        self._folder = folder
        self._environment = environment
        self._process: Popen[str] | None = None
        self._working = False

    def ask(self, request: object) -> dict[str, Any]:
        """The answer to a request; Failed when the process ends without one."""
        if self._process is None:
            self._process = start_helper(self._command, self._folder, self._environment)
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        self._working = True
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        self._working = False
        if not line:
            self._process = None
            with process:  # which closes the pipes
                raise Failed(f"its process ended with status {process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process, and what it started where that did not end."""
        process, self._process = self._process, None
        if process is None:
            return
        if self._working:
            _end_group(process.pid, signal.SIGTERM)
        if not ends_within(process, PATIENCE if self._working else None):
            _end_group(process.pid, signal.SIGKILL)
            ends_within(process, None)


def _end_group(group: int, number: int) -> None:
    """Send a signal to a process that leads a group, and to those that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


class Launcher(Helper):
    """Runs commands one after the other, each as a child of a small process.

    They have `environment` (default: that of this process).
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        super().__init__(launcher.__file__, environment=environment)

    def run(self, argv: Sequence[str], cwd: Path | str) -> Run:
        """Run `argv` in `cwd`; Failed when it cannot be started or fails."""
        answer = self.ask({"argv": list(argv), "cwd": str(cwd)})
        if answer["code"]:
            raise Failed(answer["said"] or f"exit status {answer['code']}")
        return Run(answer["seconds"], answer["cpu"], answer["rss"], answer["output"])


class Resident(Helper):
    """Does one thing again and again; `kind` is COPY, API or NVJITLINK of `resident`."""

    def __init__(self, kind: str, folder: str) -> None:
        super().__init__(resident.__file__, [kind, json.dumps(sys.path)], folder)

    def run(self, request: object) -> Run:
        """Do it once; Failed when that does not work."""
        answer = self.ask(request)
        if "failed" in answer:
            raise Failed(answer["failed"])
        return Run(answer["seconds"], answer["cpu"], answer["rss"], "")
