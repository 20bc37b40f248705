"""A process that loads the linker, links nothing, and forks.

Children wait on the socket, and each handles one request at a time; others are forked meanwhile, so
that no client waits for a fork. A child exits after a failed or unusual link, so that no state is
left for the next link. Clients are the program `pylink` with PYLINK_SERVER naming the socket.
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

from pylink._native import OBJECT_PATH
from pylink.diagnostics.errors import reason_of
from pylink.diagnostics.stream import write
from pylink.serve.request import ACCEPTED, REFUSED, ClientRequest, link, replace_streams
from pylink.serve.signals import Signals
from pylink.terminal.running import print_error

PROGRAM = "pylink serve"
VARIABLE = "PYLINK_SERVER"

# Modules that links of all kinds load, besides those that this module imports.
PRELOADED_MODULES = (
    "pylink.command.cli", "pylink.linker", "pylink.options.model", "pylink.inputs.unpacking",
    "pylink.inputs.archive", "pylink.inputs.archivehost", "pylink.diagnostics.kinds",
    "pylink.diagnostics.record", "pylink.renderers.text", "pylink.devicelink.command",
    "pylink.devicelink.step",
)  # fmt: skip

# Seconds without a byte after which a request is given up; a client waits as long for an answer.
REQUEST_TIMEOUT = 0.5

# A child links again only after a link that succeeded and loaded no module. It exits after this
# number of links, or after one if it has used more than MAX_MEMORY KiB.
MAX_LINKS = 1000
MAX_MEMORY = 256 << 10

# Exit statuses as of shells, for a command that does not exist or is not executable.
NOT_FOUND, NOT_STARTED = 127, 126

# States that a child reports: it has accepted a client, or it waits for one.
ACCEPTED_CLIENT, WAITS_FOR_CLIENT = 0, 1


class Server:
    """The process that forks the children that link.

    `script` is the file `pylink-python` of this installation: clients of others are refused.
    `ready` is the number of children that shall wait for a client, `memory_limit` the bytes of
    address space of each (None: no limit). With `same_limits` only clients are served that have the
    limits, niceness, processors and control group of this process.
    """

    def __init__(
        self,
        listener: socket.socket,
        script: str,
        ready: int,
        memory_limit: int | None,
        *,
        same_limits: bool = False,
    ) -> None:
        self.listener = listener
        self.script = script
        self.ready = ready
        self.memory_limit = memory_limit
        self.same_limits = same_limits
        # Process numbers of the children that wait for a client, and of those that link.
        self.waiting: set[int] = set()
        self.linking: set[int] = set()
        # Files of the loaded modules, and size and time of each when it was loaded.
        self.files: list[str] = []
        self.sources: list[tuple[int, int]] = []
        self.failed = 0  # number of children that ended without a request
        # The pipe through which children report their states.
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        # A pipe whose writing end only this process has: children see when it ends.
        self.alive_pipe = os.pipe()
        listener.setblocking(False)

    def run(self, path: str, command: list[str], idle: float) -> int:
        """Serve until the command ends; if it is empty, until no link ran for `idle` seconds.

        Without a command, a signal ends the server, too. `path` is that of the socket. Returns the
        exit status.
        """
        self.load()
        signals = Signals(with_command=bool(command))
        self.fork_children()
        if not command:
            write(sys.stdout, f"export {VARIABLE}={shlex.quote(path)}\n")
            return self.wait(signals, 0, idle)
        try:
            command_process = signals.start(command, {**os.environ, VARIABLE: path})
        except OSError as error:
            self.stop_waiting_children()
            print_error(PROGRAM, f"{command[0]}: {reason_of(error)}")
            return NOT_FOUND if error.errno == errno.ENOENT else NOT_STARTED
        return self.wait(signals, command_process, None)

    def load(self) -> None:
        """Import the modules that links need, and record their files."""
        for name in PRELOADED_MODULES:
            __import__(name)
        modules = [module for name, module in sys.modules.items() if name.startswith("pylink")]
        self.files = sorted(
            {OBJECT_PATH, *(module.__file__ for module in modules if module.__file__)}
        )
        self.sources = sizes_and_times(self.files)
        gc.disable()
        gc.freeze()

    def wait(self, signals: Signals, command_process: int, idle: float | None) -> int:
        """Serve until the process `command_process` ends, or until no link ran for `idle` seconds.

        A `command_process` of 0 is none, an `idle` of None no limit. Without a command, a signal
        ends the server, too. Running links are completed. Returns the exit status.
        """
        last, status = time.monotonic(), None
        while status is None or self.linking:
            remaining = None if idle is None else max(0.0, last + idle - time.monotonic())
            for source in select.select([self.reader, *signals.sources], [], [], remaining)[0]:
                if source == self.reader:
                    self.read_child_states()
                    last = time.monotonic()
                else:
                    signals.collect(source)
            exit_status = self.collect_ended_children(command_process)
            if status is not None:
                self.stop_waiting_children()  # running links of other clients are completed
            elif exit_status is not None:
                status, command_process = exit_status, 0
                self.stop_waiting_children()
            elif command_process:
                while signals.numbers:
                    os.kill(command_process, signals.numbers.pop())
                self.refresh()
            elif signals.numbers:
                status = 128 + signals.numbers[0]
                self.stop_waiting_children()
            elif idle is not None and not self.linking and time.monotonic() - last >= idle:
                status = 0
            else:
                self.refresh()
        self.stop_waiting_children()
        return status

    def refresh(self) -> None:
        """Keep `ready` children waiting, or none if sources changed or many children failed.

        If no child waits, clients link by themselves.
        """
        if self.has_changed() or self.failed > self.ready * 4:
            self.stop_waiting_children()
        else:
            self.fork_children()

    def has_changed(self) -> bool:
        """Return whether the file of a module differs from what this process has loaded."""
        try:
            return sizes_and_times(self.files) != self.sources
        except OSError:
            return True

    def fork_children(self) -> None:
        """Fork until enough children wait, but no more while many of them link."""
        while len(self.waiting) < self.ready and len(self.linking) < self.ready * 8:
            child = os.fork()
            if child == 0:
                self.serve()
            self.waiting.add(child)

    def stop_waiting_children(self) -> None:
        """Close the socket and kill the waiting children; queued clients link by themselves."""
        self.ready = 0
        self.listener.close()
        for child in self.waiting:
            os.kill(child, signal.SIGKILL)
        for child in self.waiting:
            os.waitpid(child, 0)
        self.waiting.clear()

    def read_child_states(self) -> None:
        """Read the reports of children, and record which link and which wait."""
        try:
            data = os.read(self.reader, 1 << 16)
        except BlockingIOError:
            return
        for start in range(0, len(data), 4):  # as `report_state` writes them
            number = int.from_bytes(data[start : start + 4], "little")
            source, target = self.waiting, self.linking
            if number & 1 == WAITS_FOR_CLIENT:
                source, target = target, source
            if number >> 1 in source:
                source.remove(number >> 1)
                target.add(number >> 1)

    def collect_ended_children(self, command_process: int) -> int | None:
        """Forget children that ended; return the command's exit status if it ended, else None."""
        while self.waiting or self.linking or command_process:
            child, wait_status = os.waitpid(-1, os.WNOHANG)
            if child == 0:
                break
            if child == command_process:
                code = os.waitstatus_to_exitcode(wait_status)
                return code if code >= 0 else 128 - code
            self.read_child_states()  # its reports from before it ended
            self.failed += child in self.waiting
            self.waiting.discard(child)
            self.linking.discard(child)
        return None

    def serve(self) -> None:
        """Serve clients in a child until it exits. Requests it cannot serve are refused."""
        signal.set_wakeup_fd(-1)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        if self.memory_limit is not None:
            resource.setrlimit(resource.RLIMIT_AS, (self.memory_limit, self.memory_limit))
        os.close(self.alive_pipe[1])
        replace_streams(2)  # the server's streams belong to no link
        try:
            link_count = 0
            while link_count < MAX_LINKS:
                places = [self.listener.fileno(), self.alive_pipe[0]]
                if self.alive_pipe[0] in select.select(places, [], [])[0]:
                    break  # the server has ended, so no process would end this one
                try:
                    connection, _ = self.listener.accept()
                except BlockingIOError:  # another process was faster
                    continue
                connection.settimeout(REQUEST_TIMEOUT)
                with connection, contextlib.suppress(OSError):
                    request = self.read_request(connection)
                    if request is None:
                        connection.send(REFUSED)
                        continue
                    connection.setblocking(True)
                    self.report_state(ACCEPTED_CLIENT)
                    try:
                        connection.send(ACCEPTED)
                    except OSError:  # the client did not wait so long
                        request.close()
                        self.report_state(WAITS_FOR_CLIENT)
                        continue
                    # This process ends if anything is raised before `link_count` is restored.
                    module_count, links_before, link_count = len(sys.modules), link_count, MAX_LINKS
                    status = link(connection, request)
                    used_memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                    if (
                        status == 0
                        and len(sys.modules) == module_count
                        and used_memory <= MAX_MEMORY
                    ):
                        link_count = links_before + 1
                    connection.send(bytes([status]))
                if link_count < MAX_LINKS:
                    self.report_state(WAITS_FOR_CLIENT)
        finally:
            os._exit(0)

    def read_request(self, connection: socket.socket) -> ClientRequest | None:
        """Return the client's request if this process can serve it, else None."""
        try:
            request = ClientRequest(connection)
        except (ValueError, OSError, EOFError):
            return None
        can_serve = request.can_serve(self.script) and not (
            self.same_limits and not request.has_same_limits()
        )
        if can_serve and not self.has_changed():
            return request
        request.close()
        return None

    def report_state(self, state: int) -> None:
        """Report the state of this child to the server."""
        os.write(self.writer, (os.getpid() << 1 | state).to_bytes(4, "little"))


def sizes_and_times(files: list[str]) -> list[tuple[int, int]]:
    """Return size in bytes and time of change in ns of each file; OSError if one is missing."""
    return [(status.st_size, status.st_mtime_ns) for status in map(os.stat, files)]
