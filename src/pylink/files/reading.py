"""Reading files that may turn out to be pipes, devices, or larger than any memory.

No read waits forever: a pipe must get a writer within `WRITER_SECONDS`, and more bytes within
`SILENT_SECONDS`. Devices, directories and sockets are not opened, and no more is read than a limit
allows.
"""

from __future__ import annotations

import errno
import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# Bytes of the largest file that is read, and of the head that shows the kind of a file.
MAX_SIZE = 1 << 32
HEAD_SIZE = 64

WRITER_SECONDS = 10.0
SILENT_SECONDS = 300.0
_POLL_SECONDS = 0.01  # between two attempts to read a pipe

_CHUNK = 1 << 24  # bytes to read at a time

# Starts of paths of pipes that are open already. Such a pipe without a writer is at its end.
_OPEN_PREFIXES = ("/dev/fd/", "/dev/stdin", "/proc/")


class RefusedError(OSError):
    """A file that can be opened but is not read to its end; `strerror` says why."""


class Incoming:
    """An open file or pipe; `size` is in bytes, 0 for a pipe."""

    __slots__ = ("_descriptor", "_has_writer", "_waits", "size")

    def __init__(self, path: str | os.PathLike[str], *, pipes: bool = True) -> None:
        """Open a regular file or, with `pipes`, a pipe; OSError for everything else."""
        name = os.fspath(path)
        status = os.stat(name)
        self._waits = pipes and stat.S_ISFIFO(status.st_mode)
        self._has_writer = name.startswith(_OPEN_PREFIXES)
        self.size = 0 if self._waits else status.st_size
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        if not (stat.S_ISREG(status.st_mode) or self._waits):
            kind = "neither a file nor a pipe" if pipes else "not a regular file"
            raise OSError(errno.EINVAL, f"it is {kind}", name)
        self._descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)

    def __enter__(self) -> Incoming:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def fileno(self) -> int:
        return self._descriptor

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def read(self, size: int) -> bytes:
        """Read `size` bytes, fewer only at the end of the file."""
        parts: list[bytes] = []
        while size:
            part = self._read_some(min(size, _CHUNK))
            if not part:
                break
            parts.append(part)
            size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _read_some(self, size: int) -> bytes:
        """Read 1 to `size` bytes; empty at the end of the file."""
        start = time.monotonic()
        while True:
            try:
                part = os.read(self._descriptor, size)
            except BlockingIOError:
                if not self._waits:  # some files of /proc
                    raise RefusedError(errno.EAGAIN, "it has nothing to be read now") from None
                self._has_writer = True
                limit, problem = SILENT_SECONDS, "nothing came through the pipe"
            else:
                if part or not self._waits or self._has_writer:
                    self._has_writer = True
                    return part
                limit, problem = WRITER_SECONDS, "no process writes to the pipe"
            if time.monotonic() - start > limit:
                raise RefusedError(errno.ETIMEDOUT, f"{problem} for {limit:.0f} seconds")
            time.sleep(_POLL_SECONDS)


def read_incoming(
    path: str | os.PathLike[str],
    *,
    limit: int = MAX_SIZE,
    pipes: bool = True,
    is_wanted: Callable[[bytes], bool] | None = None,
) -> bytes:
    """Read a file or, with `pipes`, a pipe.

    OSError if it cannot be read or has more than `limit` bytes. If `is_wanted` rejects the first
    `HEAD_SIZE` bytes, only these are returned.
    """
    try:
        with Incoming(path, pipes=pipes) as stream:
            head = stream.read(HEAD_SIZE)
            if is_wanted is not None and not is_wanted(head):
                return head
            if stream.size > limit:
                raise too_large(limit)
            data = head + stream.read(limit + 1 - len(head))
            if len(data) > limit:
                raise too_large(limit)
            return data
    except OSError as error:
        error.filename = error.filename or os.fspath(path)
        raise


def too_large(limit: int) -> RefusedError:
    """Make the error for a file of more than `limit` bytes."""
    return RefusedError(errno.EFBIG, f"it has more than {limit} bytes")


def is_text(head: bytes) -> bool:
    """Return whether a file with this head may be text."""
    return b"\0" not in head
