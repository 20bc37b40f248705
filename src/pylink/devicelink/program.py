"""A program of objects: the step, and a link of the host by nvcc, which then skips the step."""

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
    """A signal arrived that ends this process."""


def link_program(request: Request, argv: Sequence[str], toolkit: Toolkit, sink: Sink) -> int:
    """The status of the link of nvcc for these words, with the object of the step first."""
    if toolkit.nvcc is None:
        report_no_nvcc(sink)
    taken: list[int] = []

    def take(number: int, _frame: FrameType | None) -> None:
        taken.append(number)
        raise Interrupted

    before = [(number, signal.getsignal(number)) for number in SIGNALS]
    folder = None
    try:
        for number, handler in before:
            if handler is not signal.SIG_IGN:
                signal.signal(number, take)
        folder = make_folder()
        request.output = os.path.join(folder, NAME)
        run_step(request, toolkit, sink)
        if sink.errors:
            return sink.exit_code()
        command = [toolkit.nvcc, NO_STEP, request.output, *argv]
        try:
            return run_in_front(command, without_step())
        except OSError as error:
            report_not_started(toolkit.nvcc, error, sink)
    except Interrupted:
        return 128 + taken[0]
    finally:
        for number, handler in before:
            signal.signal(number, handler)
        if folder is not None:
            remove_folder(folder)
        if taken:
            signal.signal(taken[0], signal.SIG_DFL)
            os.kill(os.getpid(), taken[0])


def make_folder() -> str:
    """A new folder for the object, where nvcc has its own temporary files."""
    path = os.path.join(
        os.environ.get("TMPDIR") or "/tmp", f"pylink-{os.getpid()}-{time.monotonic_ns():x}"
    )
    os.mkdir(path, 0o700)
    return path


def remove_folder(folder: str) -> None:
    with suppress(OSError):
        os.unlink(os.path.join(folder, NAME))
    with suppress(OSError):
        os.rmdir(folder)
