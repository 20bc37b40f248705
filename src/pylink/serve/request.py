"""One link for a client, in a process that was forked for such links.

A request brings what a link has from its process: words,
environment, umask, directory and streams. src/_native/launcher/client.h is the other side.
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

# Answers: a request is taken, and will be followed by the status; or the client links by itself.
TAKEN, REFUSED = b"y", b"n"

STREAMS = 3
LENT = STREAMS + 1  # and the working directory
LARGEST = 1 << 30

# What decides how an interpreter starts: a link for another value is not one of this process.
DECISIVE = ("LC_ALL", "LC_CTYPE", "LANG", "PYTHONUTF8", "PYTHONIOENCODING")

# Words of these mean files of the client's process, of which only the standard streams are lent.
OWN_FILES = ("/dev/fd", "/proc/self", "/proc/thread-self")
# Commands that a process which was forked for links does as well.
SERVED = ("link", "dlink")
# Variables that hold folders of a link, and those that hold words.
FOLDERS = b"LIBRARY_PATH"
VARIABLES = (OPTIONS_VARIABLE.encode(), b"NVCC_PREPEND_FLAGS", b"NVCC_APPEND_FLAGS")
OPTIONS_FILE = BY_ATTRIBUTE["options_file"]
LIMITS = [getattr(resource, name) for name in sorted(dir(resource)) if name.startswith("RLIMIT_")]
DEEPEST = 15  # options files in each other, as nvlink has them


class Request:
    """What a client asks for; ValueError, OSError or EOFError when that cannot be made out."""

    def __init__(self, connection: socket.socket) -> None:
        self.lent = array.array("i")
        try:
            self._read(connection)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close what the client has lent: readers of its output wait for that."""
        for number in self.lent:
            os.close(number)
        del self.lent[:]

    def _read(self, connection: socket.socket) -> None:
        peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        self.process = struct.unpack("3i", peer)[0]
        if struct.unpack("3i", peer)[1] != os.geteuid():
            raise ValueError("another user's")
        room = socket.CMSG_SPACE(LENT * self.lent.itemsize)
        data, control, flags, _ = connection.recvmsg(1 << 16, room, socket.MSG_CMSG_CLOEXEC)
        for level, kind, numbers in control:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                self.lent.frombytes(numbers[: len(numbers) // 4 * 4])
        if len(self.lent) != LENT or flags & socket.MSG_CTRUNC:
            raise ValueError("not the descriptors of a client")
        while len(data) < 4:
            data += self._more(connection)
        size = int.from_bytes(data[:4], sys.byteorder)
        if size > LARGEST:
            raise ValueError("too large")
        parts = [data[4:]]
        bytes_left = size - len(parts[0])
        while bytes_left > 0:
            parts.append(self._more(connection))
            bytes_left -= len(parts[-1])
        texts = b"".join(parts).split(b"\0")
        if bytes_left or len(texts) < 5 or texts.pop():
            raise ValueError("not of the size it states")
        script, mask, count, *rest = texts
        self.script = os.fsdecode(script)
        self.umask = int(mask, 8)
        number = int(count)
        if not 0 < number <= len(rest):
            raise ValueError("fewer words than it states")
        self.argv = [os.fsdecode(word) for word in rest[:number]]
        self.environment = dict(
            text.split(b"=", 1) for text in rest[number:] if b"=" in text[1:] or text[:1] != b"="
        )

    @staticmethod
    def _more(connection: socket.socket) -> bytes:
        data = connection.recv(1 << 20)
        if not data:
            raise EOFError
        return data

    def suits(self, script: str) -> bool:
        """Whether a process of the installation with this script can link as the client would."""
        own = os.environb
        name, first = os.path.basename(self.argv[0]), "".join(self.argv[1:2])
        if name != NVLINK and first not in SERVED and first in COMMANDS:
            return False  # they may last, want a terminal, or serve links themselves
        if self._names_own_files():
            return False
        return self.script == script and all(
            own.get(name) == self.environment.get(name) for name in map(os.fsencode, DECISIVE)
        )

    def has_same_limits(self) -> bool:
        """Whether the client has the limits, niceness, processors and control group of this."""
        try:
            for number in LIMITS:
                if resource.prlimit(self.process, number) != resource.getrlimit(number):
                    return False
            nice, here = (os.getpriority(os.PRIO_PROCESS, of) for of in (self.process, 0))
            same = os.sched_getaffinity(self.process) == os.sched_getaffinity(0)
            groups = [_read_group(of) for of in (str(self.process), "self")]
        except (OSError, ValueError):
            return False
        return nice == here and same and groups[0] == groups[1]

    def _names_own_files(self) -> bool:
        """Whether words may name files of the client's process, here or in options files.

        A server that reads a pipe leaves nothing for the client, so one with options counts, too.
        """
        try:
            argv = [*self.argv, os.fsdecode(self.environment.get(FOLDERS, b""))]
            for name in VARIABLES:
                argv += split_arguments(os.fsdecode(self.environment.get(name, b"")), Sink())
            return is_own(argv, self.lent[STREAMS])
        except LinkError:  # a mistake, of which a link by itself has the words
            return True


def _read_group(process: str) -> bytes:
    with open(f"/proc/{process}/cgroup", "rb") as stream:
        return stream.read()


def is_own(argv: Sequence[str], folder: int, depth: int = 0) -> bool:
    """Whether one of the words, or of the options files among them, names such files.

    `folder` is a descriptor of the directory that they are named from. LinkError for a mistake.
    """
    for number, word in enumerate(argv):
        if any(place in word for place in OWN_FILES):
            return True
        name, equals, value = word.partition("=")
        if word.startswith("@"):
            files = [word[1:]]
        elif SPELLINGS.get(name) is OPTIONS_FILE:
            text = value if equals else "".join(argv[number + 1 : number + 2])
            files = split_items(text, Sink())
        else:
            continue
        if any(_holds_own(file, folder, depth) for file in files):
            return True
    return False


def _holds_own(file: str, folder: int, depth: int) -> bool:
    """The same of the words of an options file; one that is not there has none."""
    try:
        status = os.stat(file, dir_fd=folder)
        if stat.S_ISDIR(status.st_mode):
            return False
        # Opening a pipe meets its writer, whether anything is read or not.
        if depth == DEEPEST or not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
            return True
        with open(os.open(file, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder), "rb") as stream:
            text = os.fsdecode(stream.read())
    except (OSError, ValueError):
        return False
    return is_own(split_arguments(text, Sink()), folder, depth + 1)


def link(connection: socket.socket, request: Request) -> int:
    """Link as the client's process would; the exit status, which the client does not have yet."""
    # A client that is gone wants no result; tools that were started end with this process.
    fcntl.fcntl(connection, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(connection, fcntl.F_SETSIG, signal.SIGTERM)
    fcntl.fcntl(connection, fcntl.F_SETFL, os.O_ASYNC)
    if select.select([connection], [], [], 0)[0]:  # gone before that: it links by itself by now
        request.close()
        raise ConnectionAbortedError
    os.umask(request.umask)
    os.fchdir(request.lent[STREAMS])
    for stream in range(STREAMS):
        os.dup2(request.lent[stream], stream)
    request.close()
    os.environb.clear()
    os.environb.update(request.environment)
    sys.argv = request.argv
    sys.stdin, sys.stdout, sys.stderr = (reopen(number) for number in range(STREAMS))
    try:
        status = main()
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 1
    for text in (sys.stdout, sys.stderr):
        try:
            text.flush()
        except (OSError, ValueError):
            status = status or 1
    close_streams(STREAMS)  # readers of what was printed wait for its end
    fcntl.fcntl(connection, fcntl.F_SETFL, 0)
    return status & 0xFF


def close_streams(count: int) -> None:
    """Put nothing in the place of the first standard streams."""
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for stream in range(count):
        os.dup2(nothing, stream)
    os.close(nothing)


def reopen(number: int) -> TextIO:
    """A standard stream as the interpreter makes it."""
    before = (sys.__stdin__, sys.__stdout__, sys.__stderr__)[number]
    return open(
        number,
        "r" if number == 0 else "w",
        encoding=before.encoding if before is not None else "utf-8",
        errors=before.errors if before is not None else "surrogateescape",
        buffering=1 if number == 2 or os.isatty(number) else -1,
        closefd=False,
    )
