"""Outputs that are not named files: descriptors, devices, pipes, files that were removed."""

from __future__ import annotations

import errno
import os
import stat
import time

# Seconds to wait for a reader of a pipe, and between two attempts.
PIPE_SECONDS = 10.0
_POLL_SECONDS = 0.02

_STREAMS = ("/dev/stdin", "/dev/stdout", "/dev/stderr")


def open_special(path: str) -> int | None:
    """Open an output that no rename can replace; None for an ordinary path.

    OSError if it cannot be opened, or a pipe gets no reader within `PIPE_SECONDS`.
    """
    for prefix in ("/proc/self/fd/", "/dev/fd/"):
        number = path.removeprefix(prefix)
        if number != path and number.isdecimal():
            return os.dup(int(number))
    if path in _STREAMS:
        return os.dup(_STREAMS.index(path))
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISFIFO(status.st_mode):
        return _open_pipe(path)
    if stat.S_ISDIR(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_nlink):
        return None
    return os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_TRUNC)


def _open_pipe(path: str) -> int:
    """Open a pipe to write to, once it has a reader."""
    deadline = time.monotonic() + PIPE_SECONDS
    while True:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
        else:
            os.set_blocking(descriptor, True)
            return descriptor
        if time.monotonic() > deadline:
            raise OSError(errno.ENXIO, "no process reads from the pipe")
        time.sleep(_POLL_SECONDS)
