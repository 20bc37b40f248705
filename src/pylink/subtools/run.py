"""Running programs on data in memory: several at once, bounded in time, leaving nothing behind.

Each program reads one input and writes one output, both anonymous files that it reaches through
`/proc/self/fd`. No path exists, so nothing is left over, not even when pylink itself is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time

from pylink.errors import reason_of
from pylink.timing import elapsed_ms, now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from pylink.timing import Moment

# More output than any message of a compiler is a program out of control.
LOG_LIMIT = 1 << 24

# A poll costs microseconds, and the shortest run of ptxas some ten milliseconds.
POLL_SECONDS = 0.002

ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class Command:
    """A program, its arguments before `INPUT -o OUTPUT`, and the bytes of the input."""

    __slots__ = ("argv", "data")

    def __init__(self, argv: Sequence[str], data: bytes) -> None:
        self.argv = argv
        self.data = data


class Outcome:
    """How a run ended: `failure` says what went wrong, None after success.

    `log` is what the program printed, `input` and `output` the paths by which it knew its files,
    `elapsed` milliseconds.
    """

    __slots__ = ("data", "elapsed", "failure", "input", "log", "output", "status")

    def __init__(self, failure: str | None = None) -> None:
        self.data = b""
        self.elapsed = 0.0
        self.failure = failure
        self.input = ""
        self.log = ""
        self.output = ""
        self.status: int | None = None


class Run:
    """One started program with its files."""

    __slots__ = ("deadline", "files", "outcome", "process", "start")

    def __init__(self, command: Command, timeout: float) -> None:
        """Start it; OSError when that cannot be done."""
        self.files: list[int] = []
        self.outcome = Outcome()
        try:
            source, result, log = (self._file(name) for name in ("input", "output", "log"))
            _write(source, command.data)
            self.outcome.input = f"/proc/self/fd/{source}"
            self.outcome.output = f"/proc/self/fd/{result}"
            self.start: Moment = now()
            self.process = subprocess.Popen(
                [*command.argv, self.outcome.input, "-o", self.outcome.output],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(source, result),
            )
        except BaseException:
            self.close()
            raise
        self.deadline = time.monotonic() + timeout if timeout else float("inf")

    def _file(self, name: str) -> int:
        self.files.append(os.memfd_create(f"pylink-{name}"))
        return self.files[-1]

    def ended(self) -> bool:
        """Whether the program is no longer running; one that exceeds a limit is stopped."""
        status = self.process.poll()
        outcome = self.outcome
        if status is None:
            if time.monotonic() > self.deadline:
                outcome.failure = "did not end in time and was stopped; see --tool-timeout"
            elif os.fstat(self.files[2]).st_size > LOG_LIMIT:
                outcome.failure = f"printed more than {LOG_LIMIT} bytes and was stopped"
            else:
                return False
            self.kill()
        elif status < 0:
            outcome.failure = f"was killed by signal {-status}"
        elif status > 0:
            outcome.failure = f"ended with status {status}"
        outcome.status = status
        outcome.elapsed = elapsed_ms(self.start, now())
        outcome.data = _read(self.files[1], None)
        outcome.log = _read(self.files[2], LOG_LIMIT).decode("utf-8", "replace")
        if outcome.failure is None and not outcome.data:
            outcome.failure = "ended without a result"
        return True

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        while self.files:
            os.close(self.files.pop())


def run_all(commands: Sequence[Command], *, timeout: float) -> list[Outcome]:
    """Run the commands, as many at once as there are cores for this process; outcomes in order.

    `timeout` is seconds for each, 0 for no limit. No program outlives this call, also not when it
    ends by an exception or this process by SIGTERM or SIGHUP.
    """
    cores = len(os.sched_getaffinity(0))
    outcomes: list[Outcome] = []
    running: list[Run] = []
    waiting = iter(commands)
    guard = _Guard(running)
    try:
        more = True
        while more or running:
            while more and len(running) < cores:
                command = next(waiting, None)
                if command is None:
                    more = False
                    break
                with guard:
                    outcomes.append(start(command, timeout, running))
            for run in [run for run in running if run.ended()]:
                run.close()
                running.remove(run)
            if running:
                time.sleep(POLL_SECONDS)
    finally:
        for run in running:
            run.kill()
            run.close()
        guard.restore()
    return outcomes


def start(command: Command, timeout: float, running: list[Run]) -> Outcome:
    """Start a command and add it to those that run; its outcome, which may be settled by that."""
    try:
        run = Run(command, timeout)
    except (OSError, ValueError) as error:
        return Outcome(f"cannot be started: {reason_of(error)}")
    running.append(run)
    return run.outcome


class _Guard:
    """Ends the running programs with this process when a signal ends it.

    Only where nobody handles the signal, and only in the main thread: elsewhere Python does not
    let a handler be set. Within a `with` block the end waits for that of the block, so that no
    program is missed that has started and is not yet in the list.
    """

    __slots__ = ("_running", "_signals", "_starting", "_waiting")

    def __init__(self, running: list[Run]) -> None:
        self._running = running
        self._signals: list[int] = []
        self._starting = False
        self._waiting = 0
        if threading.current_thread() is threading.main_thread():
            for number in ENDING_SIGNALS:
                if signal.getsignal(number) is signal.SIG_DFL:
                    signal.signal(number, self._end)
                    self._signals.append(number)

    def __enter__(self) -> None:
        self._starting = True

    def __exit__(self, *exception: object) -> None:
        self._starting = False
        if self._waiting:
            self._end(self._waiting, None)

    def _end(self, number: int, frame: FrameType | None) -> None:
        if self._starting:
            self._waiting = number
            return
        for run in self._running:
            run.process.kill()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def restore(self) -> None:
        for number in self._signals:
            signal.signal(number, signal.SIG_DFL)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _read(descriptor: int, limit: int | None) -> bytes:
    size = os.fstat(descriptor).st_size
    size = size if limit is None else min(size, limit)
    chunks = []
    offset = 0
    while offset < size:
        chunk = os.pread(descriptor, size - offset, offset)
        if not chunk:
            break
        chunks.append(chunk)
        offset += len(chunk)
    return b"".join(chunks)
