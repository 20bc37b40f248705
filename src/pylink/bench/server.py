"""A `pylink serve` for the measurement of its clients."""

from __future__ import annotations

import os
import shlex

from pylink.bench.processes import Launcher, RunFailed
from pylink.options.parse import OPTIONS_VARIABLE
from pylink.serve.server import VARIABLE
from pylink.subtools.process import ends_within, start_helper


class Server:
    """The server of a program `pylink`, and the launcher whose processes are its clients.

    RunFailed if the program does not start a server, OSError if the program cannot be run.
    """

    def __init__(self, program: str) -> None:
        self._process = start_helper([program, "serve"], reads_input=False)
        assert self._process.stdout is not None
        # The server prints a shell command that sets VARIABLE to its address.
        fields = shlex.split(self._process.stdout.readline())
        name, _, value = fields[-1].partition("=") if fields else ("", "", "")
        if name != VARIABLE or not value:
            self._end()
            raise RunFailed("`pylink serve` did not start")
        environment = {**os.environ, VARIABLE: value}
        environment.pop(OPTIONS_VARIABLE, None)  # it would change the link
        self.launcher = Launcher(environment)

    def close(self) -> None:
        """End the launcher and the server."""
        self.launcher.close()
        self._end()

    def _end(self) -> None:
        """End the server."""
        self._process.terminate()
        ends_within(self._process, None)
