"""One link for a client, in a process that was forked for such links.

A request contains what a link takes from its process: arguments, environment, umask, directory and
streams. src/_native/launcher/client.h sends it.
"""

from __future__ import annotations

import array
import fcntl
import os
import resource
import select
import signal
import socket
import stat
import struct
import sys

from pylink.command.cli import main
from pylink.diagnostics import Sink
from pylink.diagnostics.errors import LinkError
from pylink.diagnostics.nvlink import NVLINK
from pylink.options.commands import COMMANDS
from pylink.options.file import split_arguments, split_items
from pylink.options.parse import OPTIONS_VARIABLE
from pylink.options.table import BY_ATTRIBUTE, SPELLINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

# Answers: the request is accepted and its status follows, or the client must link by itself.
ACCEPTED, REFUSED = b"y", b"n"

STREAMS = 3  # number of standard streams
DESCRIPTOR_COUNT = STREAMS + 1  # the streams and the working directory
MAX_REQUEST_SIZE = 1 << 30  # bytes

# Variables that an interpreter reads when it starts; a client with other values links by itself.
STARTUP_VARIABLES = ("LC_ALL", "LC_CTYPE", "LANG", "PYTHONUTF8", "PYTHONIOENCODING")

# Parts of paths that name open files of the client's process. The server has only the standard
# streams of these.
PROCESS_PATHS = ("/dev/fd", "/proc/self", "/proc/thread-self")
# Commands that a process of the server runs.
SERVED_COMMANDS = ("link", "dlink")
# Variables with directories for a link, and variables with arguments.
DIRECTORIES_VARIABLE = b"LIBRARY_PATH"
ARGUMENT_VARIABLES = (OPTIONS_VARIABLE.encode(), b"NVCC_PREPEND_FLAGS", b"NVCC_APPEND_FLAGS")
OPTIONS_FILE = BY_ATTRIBUTE["options_file"]
# Numbers of the system's resource limits.
LIMITS = [getattr(resource, name) for name in sorted(dir(resource)) if name.startswith("RLIMIT_")]
# A server follows options files in options files to this depth. A client whose files are nested
# deeper links by itself.
MAX_FILE_DEPTH = 15


class ClientRequest:
    """A client's request; ValueError, OSError or EOFError if it is malformed.

    `process` is the client's process number, `script` the file `pylink-python` of its installation.
    `descriptors` are its standard streams and, as the last one, its working directory.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.descriptors = array.array("i")
        try:
            self._read(connection)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the client's descriptors: readers of its output wait for that."""
        for number in self.descriptors:
            os.close(number)
        del self.descriptors[:]

    def _read(self, connection: socket.socket) -> None:
        """Read the request and set all attributes from it; errors as the class says."""
        peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        self.process = struct.unpack("3i", peer)[0]
        if struct.unpack("3i", peer)[1] != os.geteuid():
            raise ValueError("another user's")
        room = socket.CMSG_SPACE(DESCRIPTOR_COUNT * self.descriptors.itemsize)
        data, control, flags, _ = connection.recvmsg(1 << 16, room, socket.MSG_CMSG_CLOEXEC)
        for level, kind, numbers in control:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                self.descriptors.frombytes(numbers[: len(numbers) // 4 * 4])
        if len(self.descriptors) != DESCRIPTOR_COUNT or flags & socket.MSG_CTRUNC:
            raise ValueError("not the descriptors of a client")
        while len(data) < 4:
            data += self._receive(connection)
        size = int.from_bytes(data[:4], sys.byteorder)
        if size > MAX_REQUEST_SIZE:
            raise ValueError("too large")
        parts = [data[4:]]
        missing_size = size - len(parts[0])
        while missing_size > 0:
            parts.append(self._receive(connection))
            missing_size -= len(parts[-1])
        texts = b"".join(parts).split(b"\0")
        if missing_size or len(texts) < 5 or texts.pop():
            raise ValueError("not of the size it states")
        script, mask, count, *rest = texts
        self.script = os.fsdecode(script)
        self.umask = int(mask, 8)
        number = int(count)
        if not 0 < number <= len(rest):
            raise ValueError("fewer arguments than it states")
        self.argv = [os.fsdecode(word) for word in rest[:number]]
        self.environment = dict(
            text.split(b"=", 1) for text in rest[number:] if b"=" in text[1:] or text[:1] != b"="
        )

    @staticmethod
    def _receive(connection: socket.socket) -> bytes:
        """Return the next bytes of a request; EOFError at its end."""
        data = connection.recv(1 << 20)
        if not data:
            raise EOFError
        return data

    def can_serve(self, script: str) -> bool:
        """Return whether a server of the installation with `script` can link for this client."""
        own_environment = os.environb
        name, first = os.path.basename(self.argv[0]), "".join(self.argv[1:2])
        if name != NVLINK and first not in SERVED_COMMANDS and first in COMMANDS:
            return False  # they may run long, need a terminal, or serve links themselves
        if self._names_process_files():
            return False
        return self.script == script and all(
            own_environment.get(name) == self.environment.get(name)
            for name in map(os.fsencode, STARTUP_VARIABLES)
        )

    def has_same_limits(self) -> bool:
        """Return whether limits, niceness, processors and control group equal the client's."""
        try:
            for number in LIMITS:
                if resource.prlimit(self.process, number) != resource.getrlimit(number):
                    return False
            client_nice, own_nice = (
                os.getpriority(os.PRIO_PROCESS, process) for process in (self.process, 0)
            )
            same = os.sched_getaffinity(self.process) == os.sched_getaffinity(0)
            groups = [_read_group(process) for process in (str(self.process), "self")]
        except (OSError, ValueError):
            return False
        return client_nice == own_nice and same and groups[0] == groups[1]

    def _names_process_files(self) -> bool:
        """Return whether arguments or options files may name files of the client's process.

        A pipe with options counts, too: if the server reads it, the client cannot.
        """
        try:
            argv = [*self.argv, os.fsdecode(self.environment.get(DIRECTORIES_VARIABLE, b""))]
            for name in ARGUMENT_VARIABLES:
                argv += split_arguments(os.fsdecode(self.environment.get(name, b"")), Sink())
            return _names_process_files(argv, self.descriptors[STREAMS])
        except LinkError:  # the client's own link reports the error
            return True


def _read_group(process: str) -> bytes:
    """Return the control groups of a process, by its number or `self`."""
    with open(f"/proc/{process}/cgroup", "rb") as stream:
        return stream.read()


def _names_process_files(argv: Sequence[str], directory: int, depth: int = 0) -> bool:
    """Return whether an argument or options file may name files of the client's process.

    Relative names start at the directory of descriptor `directory`. `depth` is the number of
    options files around these arguments, each named in the one before. LinkError for invalid
    arguments.
    """
    for number, word in enumerate(argv):
        if any(place in word for place in PROCESS_PATHS):
            return True
        name, equals, value = word.partition("=")
        if word.startswith("@"):
            files = [word[1:]]
        elif SPELLINGS.get(name) is OPTIONS_FILE:
            text = value if equals else "".join(argv[number + 1 : number + 2])
            files = split_items(text, Sink())
        else:
            continue
        if any(_options_name_process_files(file, directory, depth) for file in files):
            return True
    return False


def _options_name_process_files(path: str, directory: int, depth: int) -> bool:
    """Return whether an options file may name files of the client's process.

    False for a directory, and if it cannot be read. True if it is not a regular file, such as a
    pipe, and for a file that is too large or nested too deeply.
    """
    try:
        status = os.stat(path, dir_fd=directory)
        if stat.S_ISDIR(status.st_mode):
            return False
        # Opening a pipe unblocks its writer, so it is not opened.
        if (
            depth == MAX_FILE_DEPTH
            or not stat.S_ISREG(status.st_mode)
            or status.st_size > MAX_REQUEST_SIZE
        ):
            return True
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory), "rb") as stream:
            text = os.fsdecode(stream.read())
    except (OSError, ValueError):
        return False
    return _names_process_files(split_arguments(text, Sink()), directory, depth + 1)


def link(connection: socket.socket, request: ClientRequest) -> int:
    """Link as the client's process would; return the exit status, not sent to the client yet."""
    # If the client ends, so does this process, and with it the tools that it has started.
    fcntl.fcntl(connection, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(connection, fcntl.F_SETSIG, signal.SIGTERM)
    fcntl.fcntl(connection, fcntl.F_SETFL, os.O_ASYNC)
    if select.select([connection], [], [], 0)[0]:  # the client stopped waiting and links by itself
        request.close()
        raise ConnectionAbortedError
    os.umask(request.umask)
    os.fchdir(request.descriptors[STREAMS])
    for stream in range(STREAMS):
        os.dup2(request.descriptors[stream], stream)
    request.close()
    os.environb.clear()
    os.environb.update(request.environment)
    sys.argv = request.argv
    sys.stdin, sys.stdout, sys.stderr = (_reopen(number) for number in range(STREAMS))
    try:
        status = main()
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 1
    for text in (sys.stdout, sys.stderr):
        try:
            text.flush()
        except (OSError, ValueError):
            status = status or 1
    replace_streams(STREAMS)  # readers of the output wait for its end
    fcntl.fcntl(connection, fcntl.F_SETFL, 0)
    return status & 0xFF


def replace_streams(count: int) -> None:
    """Replace the first `count` standard streams by /dev/null."""
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for stream in range(count):
        os.dup2(null, stream)
    os.close(null)


def _reopen(number: int) -> TextIO:
    """Open a standard stream as the interpreter does."""
    original = (sys.__stdin__, sys.__stdout__, sys.__stderr__)[number]
    return open(
        number,
        "r" if number == 0 else "w",
        encoding=original.encoding if original is not None else "utf-8",
        errors=original.errors if original is not None else "surrogateescape",
        buffering=1 if number == 2 or os.isatty(number) else -1,
        closefd=False,
    )
