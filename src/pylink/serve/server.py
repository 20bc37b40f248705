"""A process that loads the linker, links nothing, and forks.

Children wait on the socket, and each does one request at a time; others are forked meanwhile, so
that no client waits for a fork. A child that did anything but a plain link that succeeded ends with
it, so that nothing of it is left for the next. Clients are the program `pylink` where PYLINK_SERVER
names the socket.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import resource
import select
import shlex
import signal
import socket
import sys
import time

from pylink._native import OBJECT
from pylink.diagnostics.stream import printable, write
from pylink.serve.request import REFUSED, TAKEN, Request, close_streams, link
from pylink.serve.signals import Signals

VARIABLE = "PYLINK_SERVER"

# What links of all kinds load, beyond what this module has loaded already.
LOADED = (
    "pylink.command.cli",
    "pylink.linker",
    "pylink.options.model",
    "pylink.inputs.unpacking",
    "pylink.inputs.archive",
    "pylink.diagnostics.kinds",
    "pylink.diagnostics.record",
    "pylink.renderers.text",
    "pylink.devicelink.command",
    "pylink.devicelink.step",
)

PATIENCE = 0.5  # seconds without a byte of a request; clients wait no longer for an answer

# A process links again after a link that succeeded and loaded nothing new; not after so many, or
# when one has taken so much memory (KiB).
MOST_LINKS = 1000
MOST_MEMORY = 256 << 10

# As of shells, for a command that there is not, or that is not a program.
NOT_FOUND, NOT_STARTED = 127, 126

# What a child tells.
TOOK, WAITS = 0, 1


class Server:
    """The process that forks those that link.

    With `same_limits` it links for clients alone whose limits, niceness, processors and control
    group are those of this process: nobody started it for them.
    """

    def __init__(
        self,
        listener: socket.socket,
        script: str,
        ready: int,
        memory: int | None,
        *,
        same_limits: bool = False,
    ) -> None:
        self.listener = listener
        self.script = script
        self.ready = ready
        self.memory = memory
        self.same_limits = same_limits
        self.waiting: set[int] = set()
        self.linking: set[int] = set()
        self.files: list[str] = []
        self.sources: list[tuple[int, int]] = []
        self.failed = 0  # children that ended without a request
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        self.alive = os.pipe()  # ends with this process
        listener.setblocking(False)

    def run(self, path: str, command: list[str], idle: float) -> int:
        """Serve until the command ends, or for want of one until nobody asks; the exit status."""
        self.load()
        signals = Signals(with_command=bool(command))
        self.fill()
        if not command:
            write(sys.stdout, f"export {VARIABLE}={shlex.quote(path)}\n")
            return self.wait(signals, 0, idle)
        try:
            started = signals.start(command, {**os.environ, VARIABLE: path})
        except OSError as error:
            self.drop()
            write(None, f"pylink serve: {printable(command[0])}: {error.strerror}\n")
            return NOT_FOUND if error.errno == errno.ENOENT else NOT_STARTED
        return self.wait(signals, started, None)

    def load(self) -> None:
        """Load what links need, and note what was loaded."""
        for name in LOADED:
            __import__(name)
        modules = [module for name, module in sys.modules.items() if name.startswith("pylink")]
        self.files = sorted({OBJECT, *(module.__file__ for module in modules if module.__file__)})
        self.sources = signature(self.files)
        gc.disable()
        gc.freeze()

    def wait(self, signals: Signals, started: int, idle: float | None) -> int:
        """Serve until the process `started` ends, or as long as somebody asks; the exit status."""
        last, status = time.monotonic(), None
        while status is None or self.linking:
            left = None if idle is None else max(0.0, last + idle - time.monotonic())
            for source in select.select([self.reader, *signals.sources], [], [], left)[0]:
                if source == self.reader:
                    self.hear()
                    last = time.monotonic()
                else:
                    signals.take(source)
            ended = self.reap(started)
            if status is not None:
                self.drop()  # links that others wait for come to their end
            elif ended is not None:
                status, started = ended, 0
                self.drop()
            elif started:
                while signals.numbers:
                    os.kill(started, signals.numbers.pop())
                self.refresh()
            elif signals.numbers:
                status = 128 + signals.numbers[0]
                self.drop()
            elif idle is not None and not self.linking and time.monotonic() - last >= idle:
                status = 0
            else:
                self.refresh()
        self.drop()
        return status

    def refresh(self) -> None:
        """Have as many wait as is wanted, none after a change: clients link by themselves then."""
        if self.changed() or self.failed > self.ready * 4:
            self.drop()
        else:
            self.fill()

    def changed(self) -> bool:
        """Whether a source is no longer what this process has loaded."""
        try:
            return signature(self.files) != self.sources
        except OSError:
            return True

    def fill(self) -> None:
        """Fork until enough processes wait; a machine that is busy as it is gets no more."""
        while len(self.waiting) < self.ready and len(self.linking) < self.ready * 8:
            child = os.fork()
            if child == 0:
                self.serve()
            self.waiting.add(child)

    def drop(self) -> None:
        """End the processes that wait; clients that have asked already are sent away."""
        self.ready = 0
        self.listener.close()
        for child in self.waiting:
            os.kill(child, signal.SIGKILL)
        for child in self.waiting:
            os.waitpid(child, 0)
        self.waiting.clear()

    def hear(self) -> None:
        """Note which children link and which wait; each has reported itself."""
        try:
            data = os.read(self.reader, 1 << 16)
        except BlockingIOError:
            return
        for start in range(0, len(data), 4):
            number = int.from_bytes(data[start : start + 4], "little")
            here, there = self.waiting, self.linking
            if number & 1 == WAITS:
                here, there = there, here
            if number >> 1 in here:
                here.remove(number >> 1)
                there.add(number >> 1)

    def reap(self, started: int) -> int | None:
        """Forget the children that ended; the exit status of the command, if it is among them."""
        status = None
        while self.waiting or self.linking or started:
            child, ended = os.waitpid(-1, os.WNOHANG)
            if child == 0:
                break
            if child == started:
                code = os.waitstatus_to_exitcode(ended)
                return code if code >= 0 else 128 - code
            self.hear()  # what it reported before it ended
            self.failed += child in self.waiting
            self.waiting.discard(child)
            self.linking.discard(child)
        return status

    def serve(self) -> None:
        """Wait for a client, link and end; what is not a good request is answered, and waits
        again."""
        signal.set_wakeup_fd(-1)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        if self.memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (self.memory, self.memory))
        os.close(self.alive[1])
        close_streams(2)  # those of this server belong to no link
        try:
            links = 0
            while links < MOST_LINKS:
                places = [self.listener.fileno(), self.alive[0]]
                if self.alive[0] in select.select(places, [], [])[0]:
                    break  # nobody would end this process when it is not needed
                try:
                    connection, _ = self.listener.accept()
                except BlockingIOError:  # another process was faster
                    continue
                connection.settimeout(PATIENCE)
                with connection, contextlib.suppress(OSError):
                    request = self.take_request(connection)
                    if request is None:
                        connection.send(REFUSED)
                        continue
                    connection.setblocking(True)
                    self.tell(TOOK)
                    try:
                        connection.send(TAKEN)
                    except OSError:  # the client did not wait so long
                        request.close()
                        self.tell(WAITS)
                        continue
                    # Whatever comes in between ends this process.
                    known, before, links = len(sys.modules), links, MOST_LINKS
                    status = link(connection, request)
                    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                    if status == 0 and len(sys.modules) == known and memory <= MOST_MEMORY:
                        links = before + 1
                    connection.send(bytes([status]))
                if links < MOST_LINKS:
                    self.tell(WAITS)
        finally:
            os._exit(0)

    def take_request(self, connection: socket.socket) -> Request | None:
        """A request that this process can do, or None."""
        try:
            request = Request(connection)
        except (ValueError, OSError, EOFError):
            return None
        suits = request.suits(self.script) and not (
            self.same_limits and not request.has_same_limits()
        )
        if suits and not self.changed():
            return request
        request.close()
        return None

    def tell(self, what: int) -> None:
        """Tell the process that forked this one what it does now."""
        os.write(self.writer, (os.getpid() << 1 | what).to_bytes(4, "little"))


def signature(files: list[str]) -> list[tuple[int, int]]:
    """Size and time of each file; OSError."""
    return [(status.st_size, status.st_mtime_ns) for status in map(os.stat, files)]
