"""The contenders of a benchmark, which link in turn: each writes one file from the same inputs.

`pylink API` and `copy` run in this process, `nvJitLink` in a process of its own; their time is that
of the call. The time of `pylink CLI` and `nvlink` is that of the whole process. `pylink bench` has
the same contenders for links of its users, but takes the turns itself and runs each in a process of
its own. Here pytest-benchmark takes the turns and calls the API in this process, so that the copy
runs here, too.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from helpers import oracle

import pylink
from pylink.bench import resident
from pylink.bench.contenders import API, CLI, COPY, JIT_TYPES, NVJITLINK, NVLINK, SERVED
from pylink.bench.processes import Launcher, Resident
from pylink.facts import inputkinds
from pylink.jitlink import real

API_PROCESS = "import sys, pylink; pylink.link(sys.argv[3:], arch=sys.argv[1], output=sys.argv[2])"


class Contenders:
    """The link of some cubins by every contender: pylink, nvlink, nvJitLink, and a plain copy.

    Names may be relative to `folder`, which then must be the working directory. Programs that
    `client_launcher` starts use a `pylink serve`. `peaks` has the peak resident bytes of the
    contenders' processes.
    """

    def __init__(
        self,
        launcher: Launcher,
        arch: str,
        folder: Path,
        names: list[str],
        client_launcher: Launcher | None = None,
    ) -> None:
        self.arch = f"sm_{arch}"
        self.folder = folder
        self.names = names
        self.peaks: dict[str, int] = {}
        self._launcher = launcher
        self._client_launcher = client_launcher
        self._output = folder.parent / "linked" / f"{folder.name}.cubin"
        self._output.parent.mkdir(exist_ok=True)
        self._library = real.find(13)
        self._jit = Resident(resident.NVJITLINK, str(folder))

    def names_in_turn(self) -> list[str]:
        """Return the contenders before `pylink API`, which the benchmark calls after the last.

        The last one is the copy, so that it and the API run under the same conditions.
        """
        return [CLI, NVLINK, *([NVJITLINK] if self._library else []), COPY]

    def clear(self) -> None:
        """Remove the output: every contender writes a new file."""
        self._output.unlink(missing_ok=True)

    def seconds(self, contender: str) -> float:
        """Link, or copy, once with a contender, and return the seconds."""
        self.clear()
        if contender in (COPY, API):
            start = time.perf_counter()
            self.copy() if contender == COPY else self.link()
            return time.perf_counter() - start
        if contender == NVJITLINK:
            assert self._library is not None
            run = self._jit.run(
                {
                    "library": self._library,
                    "options": [f"-arch={self.arch}"],
                    "inputs": [(JIT_TYPES[inputkinds.CUBIN], name) for name in self.names],
                    "output": str(self._output),
                }
            )
        else:
            launcher = self._client_launcher if contender == SERVED else self._launcher
            assert launcher is not None
            run = launcher.run(self._argv(contender), self.folder)
        self.peaks[contender] = max(self.peaks.get(contender, 0), run.rss)
        return run.seconds

    def link(self) -> None:
        """Link through pylink's Python interface."""
        pylink.link(self.names, arch=self.arch, output=self._output)

    def measure_api(self) -> None:
        """Set the peak memory of `pylink API`: that of a process that only links."""
        run = self._launcher.run(self._argv(API), self.folder)
        self.peaks[API] = run.rss

    def copy(self) -> None:
        """Copy the inputs to the output, which is the least that a link must do."""
        resident.copy(self.names, str(self._output))

    def close(self) -> None:
        self._jit.close()

    def _argv(self, contender: str) -> list[str]:
        """Return the command line of a contender's process."""
        if contender == API:
            return [sys.executable, "-c", API_PROCESS, self.arch, str(self._output), *self.names]
        tool = (
            oracle.toolchain().tool("nvlink")
            if contender == NVLINK
            else str(Path(sys.executable).with_name("pylink"))
        )
        return [tool, f"-arch={self.arch}", *self.names, "-o", str(self._output)]
