"""Running programs: several at once, none of which outlives this process."""

from __future__ import annotations

import os
import select
import signal
import threading
import time

from pylink.diagnostics.errors import reason_of
from pylink.subtools.process import Command, Outcome, Run
from pylink.timing import elapsed_ms, now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from pylink.timing import Moment

__all__ = ["Command", "Outcome", "answer", "run_all"]

# How long to wait for something to be printed before looking whether a program has ended: a look
# costs microseconds, and the shortest run of ptxas some ten milliseconds.
POLL_MS = 2

# The terminal sends these to the process group of pylink alone. Where pylink is a program of its
# own, SIGINT has its default action; elsewhere it is an exception, which ends what runs, too.
ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def run_all(commands: Sequence[Command], *, timeout: float) -> list[Outcome]:
    """Run the commands, as many at once as there are cores for this process; outcomes in order.

    `timeout` is seconds for each, 0 for no limit. No program outlives this call, also not when it
    ends by an exception or this process by SIGTERM, SIGHUP or SIGQUIT.
    """
    cores = len(os.sched_getaffinity(0))
    outcomes: list[Outcome] = []
    running: list[Run] = []
    waiting = iter(commands)
    guard = _Guard(running)
    last = now()
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
            ended = [run for run in running if run.ended()]
            last = _divide(running, last)
            for run in ended:
                run.close()
                running.remove(run)
            if running:
                wait(running)
    finally:
        for run in running:
            run.kill()
            run.close()
        guard.restore()
    return outcomes


def answer(argv: Sequence[str], *, timeout: float) -> str:
    """What a program prints to standard output; nothing when it fails or takes too long."""
    (outcome,) = run_all([Command(argv, None, prints=True, drops_errors=True)], timeout=timeout)
    return "" if outcome.failure else outcome.log


def _divide(running: Sequence[Run], last: Moment) -> Moment:
    """Give each running program its part of the time since `last`; the moment up to which."""
    until = now()
    for run in running:
        run.outcome.elapsed += elapsed_ms(max(last, run.start), until) / len(running)
    return until


def start(command: Command, timeout: float, running: list[Run]) -> Outcome:
    """Start a command and add it to those that run; its outcome, which may be settled by that."""
    try:
        run = Run(command, timeout)
    except (OSError, ValueError) as error:
        return Outcome(f"cannot be started: {reason_of(error)}")
    running.append(run)
    return run.outcome


def wait(running: Sequence[Run]) -> None:
    """Wait until one of them prints or closes its streams, or for `POLL_MS`."""
    poll = select.poll()
    for run in running:
        poll.register(run.pipe, select.POLLIN)
    events = poll.poll(POLL_MS)
    if events and not any(event & select.POLLIN for _, event in events):
        time.sleep(POLL_MS / 1000)  # streams that a program closed early are reported each time


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
            run.signal()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def restore(self) -> None:
        for number in self._signals:
            signal.signal(number, signal.SIG_DFL)
