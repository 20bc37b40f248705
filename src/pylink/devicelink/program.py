"""Links a program from objects: the device-link step, then nvcc without its own step."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from pylink.devicelink.handover import NO_STEP, nvcc_environment, report_no_nvcc, report_not_started
from pylink.devicelink.step import run_step
from pylink.files.atomic import refuse_output
from pylink.subtools.process import run_attached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from pylink.devicelink.request import Request
    from pylink.devicelink.toolkit import Toolkit
    from pylink.diagnostics import Sink

OBJECT_NAME = "a_dlink.o"
# Signals after which the directory with the object is removed before the process ends.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal that ends this process arrived."""


def link_program(request: Request, argv: Sequence[str], toolkit: Toolkit, sink: Sink) -> int:
    """Do the device-link step of a program, then run nvcc with the step's object as first argument.

    Return nvcc's status, or the step's if it reported errors. After one of SIGNALS, this process
    ends by that signal.
    """
    if toolkit.nvcc is None:
        report_no_nvcc(sink)
    arrived: list[int] = []  # numbers of signals

    def interrupt(number: int, _frame: FrameType | None) -> None:
        arrived.append(number)
        raise Interrupted

    old_handlers = [(number, signal.getsignal(number)) for number in SIGNALS]
    directory = None
    try:
        for number, handler in old_handlers:
            if handler is not signal.SIG_IGN:
                signal.signal(number, interrupt)
        directory = _make_directory(sink)
        request.output = os.path.join(directory, OBJECT_NAME)
        run_step(request, toolkit, sink)
        if sink.errors:
            return sink.exit_code()
        command = [toolkit.nvcc, NO_STEP, request.output, *argv]
        try:
            return run_attached(command, nvcc_environment())
        except OSError as error:
            report_not_started(toolkit.nvcc, error, sink)
    except Interrupted:
        return 128 + arrived[0]  # as a shell reports the signal
    finally:
        for number, handler in old_handlers:
            signal.signal(number, handler)
        if directory is not None:
            _remove_directory(directory)
        if arrived:  # end like a program that does not handle the signal
            signal.signal(arrived[0], signal.SIG_DFL)
            os.kill(os.getpid(), arrived[0])


def _make_directory(sink: Sink) -> str:
    """Create a directory for the object beside nvcc's temporary files, and return its path.

    `tempfile` is not used here: importing it takes 7 ms, and in a child of `pylink serve` it would
    name the directory of the server's environment.
    """
    path = os.path.join(
        os.environ.get("TMPDIR") or "/tmp", f"pylink-{os.getpid()}-{time.monotonic_ns():x}"
    )
    try:
        os.mkdir(path, 0o700)
    except OSError as error:
        refuse_output(path, error, sink)
    return path


def _remove_directory(directory: str) -> None:
    with suppress(OSError):
        os.unlink(os.path.join(directory, OBJECT_NAME))
    with suppress(OSError):
        os.rmdir(directory)
