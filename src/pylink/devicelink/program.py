"""Links a program from objects: the device-link step, then nvcc without its own step."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from pylink.devicelink.handover import NO_STEP, report_no_nvcc, report_not_started, without_step
from pylink.devicelink.step import run_step
from pylink.subtools.process import run_in_front

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from pylink.devicelink.request import Request
    from pylink.devicelink.toolkit import Toolkit
    from pylink.diagnostics import Sink

NAME = "a_dlink.o"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal that ends this process arrived."""


def link_program(request: Request, argv: Sequence[str], toolkit: Toolkit, sink: Sink) -> int:
    """Do the step, run nvcc with its object as the first argument, and return nvcc's status."""
    if toolkit.nvcc is None:
        report_no_nvcc(sink)
    signals: list[int] = []

    def interrupt(number: int, _frame: FrameType | None) -> None:
        signals.append(number)
        raise Interrupted

    before = [(number, signal.getsignal(number)) for number in SIGNALS]
    directory = None
    try:
        for number, handler in before:
            if handler is not signal.SIG_IGN:
                signal.signal(number, interrupt)
        directory = make_directory()
        request.output = os.path.join(directory, NAME)
        run_step(request, toolkit, sink)
        if sink.errors:
            return sink.exit_code()
        command = [toolkit.nvcc, NO_STEP, request.output, *argv]
        try:
            return run_in_front(command, without_step())
        except OSError as error:
            report_not_started(toolkit.nvcc, error, sink)
    except Interrupted:
        return 128 + signals[0]
    finally:
        for number, handler in before:
            signal.signal(number, handler)
        if directory is not None:
            remove_directory(directory)
        if signals:
            signal.signal(signals[0], signal.SIG_DFL)
            os.kill(os.getpid(), signals[0])


def make_directory() -> str:
    """Create a directory for the object, in the place of nvcc's temporary files."""
    path = os.path.join(
        os.environ.get("TMPDIR") or "/tmp", f"pylink-{os.getpid()}-{time.monotonic_ns():x}"
    )
    os.mkdir(path, 0o700)
    return path


def remove_directory(directory: str) -> None:
    with suppress(OSError):
        os.unlink(os.path.join(directory, NAME))
    with suppress(OSError):
        os.rmdir(directory)
