"""Links requests: several at once, each in a directory and with streams of its own."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from pylink.command.cli import TOOL, link_command
from pylink.diagnostics.errors import reason_of
from pylink.diagnostics.stream import to_bytes
from pylink.worker.protocol import Response, WorkerRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

# Flag of unshare(2) from <sched.h>: the thread gets a working directory of its own.
CLONE_FS = 0x200


class ThreadOutput:
    """Replaces sys.stdout and sys.stderr: collects the output of each thread for its request."""

    encoding = "utf-8"
    closed = False

    def __init__(self) -> None:
        self._printed = threading.local()

    def write(self, text: str) -> int:
        self._parts().append(text)
        return len(text)

    def flush(self) -> None:
        """Do nothing: the text is collected at once."""

    def isatty(self) -> bool:
        return False

    def drain(self) -> str:
        """Return the text this thread printed since the last call; invalid UTF-8 becomes U+FFFD."""
        parts = self._parts()
        text = "".join(parts)
        parts.clear()
        return to_bytes(text).decode("utf-8", "replace")

    def _parts(self) -> list[str]:
        """Return the texts that this thread printed since its request began."""
        if not hasattr(self._printed, "parts"):
            self._printed.parts = []
        parts: list[str] = self._printed.parts
        return parts


def _unshare_directory() -> bool:
    """Give this thread a working directory of its own; False if the system cannot."""
    try:
        return bool(ctypes.CDLL(None).unshare(CLONE_FS) == 0)
    except (OSError, AttributeError):
        return False


def _count_usable_threads(requested: int) -> int:
    """Return the number of threads that may link: 1 if all must share one working directory."""
    unshared: list[bool] = []
    probe = threading.Thread(target=lambda: unshared.append(_unshare_directory()))
    probe.start()
    probe.join()
    return requested if unshared == [True] else 1


class Linkers:
    """Links requests and hands each response to `reply`, in any order.

    `argv` comes before the arguments of each request. A request cancelled before a thread takes it
    is not linked. A running link is completed, since its output appears atomically, and its
    response says that it was cancelled.
    """

    def __init__(
        self, argv: Sequence[str], threads: int, reply: Callable[[Response], None]
    ) -> None:
        self._argv = list(argv)
        self._reply = reply
        self._base = os.getcwd()  # directory to which sandboxes are relative
        self._output = ThreadOutput()
        self._lock = threading.Lock()  # for the next two, which are by number of the request
        self._running: dict[int, Future[None]] = {}  # also those that wait for a thread
        self._cancelled: set[int] = set()
        count = _count_usable_threads(threads)
        self._pool = ThreadPoolExecutor(count, initializer=_unshare_directory)
        sys.stdout = sys.stderr = self._output

    def submit(self, request: WorkerRequest) -> None:
        """Start a request, or cancel an earlier one."""
        if request.cancel:
            self._cancel(request.number)
            return
        with self._lock:
            self._running[request.number] = self._pool.submit(self._run_request, request)

    def finish(self) -> None:
        """Wait for all responses."""
        self._pool.shutdown(wait=True)

    def _cancel(self, number: int) -> None:
        """Cancel a request that waits; one that runs is answered as cancelled when it ends."""
        with self._lock:
            future = self._running.get(number)
            if future is None:  # already linked; its response is on its way
                return
            if not future.cancel():
                self._cancelled.add(number)
                return
            del self._running[number]
        self._reply(Response(number, 0, "", cancelled=True))

    def _run_request(self, request: WorkerRequest) -> None:
        """Link, in a thread of the pool, and reply."""
        try:
            status = self._link(request)
        except BaseException as error:  # no request may end the worker
            self._output.write(f"pylink fatal   : {type(error).__name__}: {error}\n")
            status = 1
        with self._lock:
            self._running.pop(request.number, None)
            cancelled = request.number in self._cancelled
            self._cancelled.discard(request.number)
        self._reply(Response(request.number, status, self._output.drain(), cancelled=cancelled))

    def _link(self, request: WorkerRequest) -> int:
        """Link in the sandbox of a request; return the exit status."""
        directory = os.path.join(self._base, request.sandbox)
        try:
            os.chdir(directory)
        except (OSError, ValueError) as error:
            self._output.write(f"pylink fatal   : no sandbox {directory}: {reason_of(error)}\n")
            return 1
        argv = [*self._argv, *request.arguments]
        return link_command(argv[argv[:1] == ["link"] :], TOOL, owns_process=False)
