"""Runs programs, several at once; none of them outlives this process."""

from __future__ import annotations

import os
import select
import signal
import time

from pylink._native.cores import count_cores
from pylink.diagnostics.errors import reason_of
from pylink.subtools.process import Command, Outcome, ToolProcess
from pylink.timing import elapsed_ms, now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from pylink.timing import Moment

__all__ = ["Command", "Outcome", "output_of", "run_all"]

# Milliseconds to wait for output before checking whether a program has ended. A check costs
# microseconds; the shortest run of ptxas takes about ten milliseconds.
POLL_MS = 2

# Signals that end pylink. A terminal sends them to pylink's process group, but each started program
# is in a group of its own and does not get them. As a program, pylink has the default action for
# SIGINT; as a library, SIGINT is an exception, which also ends running programs.
ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def run_all(commands: Sequence[Command], *, timeout: float) -> list[Outcome]:
    """Run the commands, as many at once as this process may use cores; return outcomes in order.

    `timeout` is in seconds for each command, 0 for no limit. No program outlives this call, even
    after an exception, or in the main thread, if SIGTERM, SIGHUP or SIGQUIT ends this process.
    """
    cores = count_cores()
    outcomes: list[Outcome] = []
    running: list[ToolProcess] = []
    waiting = iter(commands)
    guard = _SignalGuard(running)
    last = now()
    try:
        has_more = True
        while has_more or running:
            while has_more and len(running) < cores:
                command = next(waiting, None)
                if command is None:
                    has_more = False
                    break
                with guard:
                    outcomes.append(_start_program(command, timeout, running))
            ended_runs = [run for run in running if run.has_ended()]
            last = _share_time(running, last)
            for run in ended_runs:
                run.close()
                running.remove(run)
            if running:
                wait_for_output(running)
    finally:
        for run in running:
            run.kill()
            run.close()
        guard.restore()
    return outcomes


def output_of(argv: Sequence[str], *, timeout: float) -> str:
    """Return the standard output of a program; empty if it fails or takes too long."""
    (outcome,) = run_all([Command(argv, None, prints=True, drops_errors=True)], timeout=timeout)
    return "" if outcome.failure else outcome.log


def _share_time(running: Sequence[ToolProcess], last: Moment) -> Moment:
    """Add to each running program its share of the time since `last`; return the current moment."""
    moment = now()
    for run in running:
        run.outcome.elapsed += elapsed_ms(max(last, run.start), moment) / len(running)
    return moment


def _start_program(command: Command, timeout: float, running: list[ToolProcess]) -> Outcome:
    """Start a command and add it to `running`; return its outcome, a failure if it cannot start."""
    try:
        run = ToolProcess(command, timeout)
    except (OSError, ValueError) as error:
        return Outcome(f"cannot be started: {reason_of(error)}")
    running.append(run)
    return run.outcome


def wait_for_output(running: Sequence[ToolProcess]) -> None:
    """Wait until a program prints or closes its streams, at most `POLL_MS`."""
    poll = select.poll()
    for run in running:
        poll.register(run.pipe, select.POLLIN)
    events = poll.poll(POLL_MS)
    if events and not any(event & select.POLLIN for _, event in events):
        # poll returns at once for streams that a program closed before its end.
        time.sleep(POLL_MS / 1000)


class _SignalGuard:
    """Ends the running programs if a signal ends this process.

    Only signals without another handler are handled, and only in the main thread, since Python sets
    handlers only there. Inside a `with` block a signal waits for the end of the block, so that a
    program which has just started is in the list.
    """

    __slots__ = ("_pending_signal", "_running", "_signals", "_starting")

    def __init__(self, running: list[ToolProcess]) -> None:
        self._running = running
        self._signals: list[int] = []  # numbers of the signals that it handles
        self._starting = False  # whether a `with` block is open
        self._pending_signal = 0  # number of a signal that arrived in a `with` block, 0 for none
        for number in ENDING_SIGNALS:
            if signal.getsignal(number) is signal.SIG_DFL:
                try:
                    signal.signal(number, self._end)
                except ValueError:  # not the main thread
                    break
                self._signals.append(number)

    def __enter__(self) -> None:
        self._starting = True

    def __exit__(self, *exception: object) -> None:
        self._starting = False
        if self._pending_signal:
            self._end(self._pending_signal, None)

    def _end(self, number: int, frame: FrameType | None) -> None:
        """Handle signal `number`: kill the running programs, then let it end this process."""
        if self._starting:
            self._pending_signal = number
            return
        for run in self._running:
            run.send_kill()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def restore(self) -> None:
        """Give the signals their default action again."""
        for number in self._signals:
            signal.signal(number, signal.SIG_DFL)
