"""Doing requests: several at once, each in a directory and with streams of its own."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from pylink.command.cli import TOOL, link_command
from pylink.diagnostics.errors import reason_of
from pylink.diagnostics.stream import to_bytes
from pylink.worker.protocol import Request, Response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

# Linux: <sched.h>. A thread with it has a working directory of its own.
CLONE_FS = 0x200


class Streams:
    """Stands for sys.stdout and sys.stderr: what a thread prints is kept for its request."""

    encoding = "utf-8"
    closed = False

    def __init__(self) -> None:
        self._printed = threading.local()

    def write(self, text: str) -> int:
        self._parts().append(text)
        return len(text)

    def flush(self) -> None:
        """Nothing waits."""

    def isatty(self) -> bool:
        return False

    def take(self) -> str:
        """What this thread printed since it was asked last; names that are not UTF-8 with marks."""
        parts = self._parts()
        text = "".join(parts)
        parts.clear()
        return to_bytes(text).decode("utf-8", "replace")

    def _parts(self) -> list[str]:
        if not hasattr(self._printed, "parts"):
            self._printed.parts = []
        parts: list[str] = self._printed.parts
        return parts


def leave_directory() -> bool:
    """Give this thread a working directory of its own; False where the system does not."""
    try:
        return bool(ctypes.CDLL(None).unshare(CLONE_FS) == 0)
    except (OSError, AttributeError):
        return False


def threads_for(wanted: int) -> int:
    """How many threads may link: one, where all threads share one working directory."""
    apart: list[bool] = []
    probe = threading.Thread(target=lambda: apart.append(leave_directory()))
    probe.start()
    probe.join()
    return wanted if apart == [True] else 1


class Linkers:
    """Links what is asked for, and hands each response to `reply`, in any order.

    `words` come before those of each request. What is cancelled before a thread takes it is not
    done; what is being linked then is linked to its end, since an output appears atomically, and
    its response says that it was cancelled.
    """

    def __init__(
        self, argv: Sequence[str], threads: int, reply: Callable[[Response], None]
    ) -> None:
        self._argv = list(argv)
        self._reply = reply
        self._base = os.getcwd()
        self._streams = Streams()
        self._lock = threading.Lock()
        self._running: dict[int, Future[None]] = {}
        self._cancelled: set[int] = set()
        count = threads_for(threads)
        self._threads = ThreadPoolExecutor(count, initializer=leave_directory)
        sys.stdout = sys.stderr = self._streams

    def submit(self, request: Request) -> None:
        """Take a request, or cancel one."""
        if request.cancel:
            self._cancel(request.number)
            return
        with self._lock:
            self._running[request.number] = self._threads.submit(self._do, request)

    def finish(self) -> None:
        """Wait for all responses."""
        self._threads.shutdown(wait=True)

    def _cancel(self, number: int) -> None:
        with self._lock:
            future = self._running.get(number)
            if future is None:  # it is done, and the response on its way
                return
            if not future.cancel():
                self._cancelled.add(number)
                return
            del self._running[number]
        self._reply(Response(number, 0, "", cancelled=True))

    def _do(self, request: Request) -> None:
        try:
            status = self._link(request)
        except BaseException as error:  # no request may end the worker
            self._streams.write(f"pylink fatal   : {type(error).__name__}: {error}\n")
            status = 1
        with self._lock:
            self._running.pop(request.number, None)
            cancelled = request.number in self._cancelled
            self._cancelled.discard(request.number)
        self._reply(Response(request.number, status, self._streams.take(), cancelled=cancelled))

    def _link(self, request: Request) -> int:
        directory = os.path.join(self._base, request.sandbox)
        try:
            os.chdir(directory)
        except (OSError, ValueError) as error:
            self._streams.write(f"pylink fatal   : no sandbox {directory}: {reason_of(error)}\n")
            return 1
        argv = [*self._argv, *request.arguments]
        return link_command(argv[argv[:1] == ["link"] :], TOOL, owns_process=False)
