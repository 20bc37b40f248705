"""Reading files that may turn out to be pipes, devices, or larger than any memory.

Nothing is opened that would wait for good: a pipe has `WRITER_SECONDS` to get a writer, and its
writer `SILENT_SECONDS` for the next bytes. Devices, folders and sockets are not even opened, and no
more is read than a limit allows.
"""

from __future__ import annotations

import errno
import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# Bytes of the largest file that is read, and of the beginning that shows the kind of a file.
MAX_SIZE = 1 << 32
HEAD_SIZE = 64

WRITER_SECONDS = 10.0
SILENT_SECONDS = 300.0
_POLL_SECONDS = 0.01

_CHUNK = 1 << 24

# Pipes of these names have their writer already; without one they are at their end.
_DESCRIPTORS = ("/dev/fd/", "/dev/stdin", "/proc/")


class RefusedError(OSError):
    """A file that could be opened and is not read, or not to its end; `strerror` says why."""


class Incoming:
    """An open file or pipe; `size` in bytes as the system says, 0 for a pipe."""

    __slots__ = ("_descriptor", "_has_writer", "_waits", "size")

    def __init__(self, path: str | os.PathLike[str], *, pipes: bool = True) -> None:
        """Open it; OSError for what is neither a file nor, with `pipes`, a pipe."""
        name = os.fspath(path)
        status = os.stat(name)
        self._waits = pipes and stat.S_ISFIFO(status.st_mode)
        self._has_writer = name.startswith(_DESCRIPTORS)
        self.size = 0 if self._waits else status.st_size
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        if not (stat.S_ISREG(status.st_mode) or self._waits):
            wanted = "neither a file nor a pipe" if pipes else "no regular file"
            raise OSError(errno.EINVAL, f"it is {wanted}", name)
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
        """As many bytes, fewer only at the end."""
        parts: list[bytes] = []
        while size:
            part = self._read_some(min(size, _CHUNK))
            if not part:
                break
            parts.append(part)
            size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _read_some(self, size: int) -> bytes:
        """At least a byte, none at the end."""
        start = time.monotonic()
        while True:
            try:
                part = os.read(self._descriptor, size)
            except BlockingIOError:
                if not self._waits:  # some files of /proc
                    raise RefusedError(errno.EAGAIN, "it has nothing to be read now") from None
                self._has_writer = True
                limit, what = SILENT_SECONDS, "nothing came through the pipe"
            else:
                if part or not self._waits or self._has_writer:
                    self._has_writer = True
                    return part
                limit, what = WRITER_SECONDS, "nobody writes to the pipe"
            if time.monotonic() - start > limit:
                raise RefusedError(errno.ETIMEDOUT, f"{what} for {limit:.0f} seconds")
            time.sleep(_POLL_SECONDS)


def read_incoming(
    path: str | os.PathLike[str],
    *,
    limit: int = MAX_SIZE,
    pipes: bool = True,
    wanted: Callable[[bytes], bool] | None = None,
) -> bytes:
    """The contents of a file or, with `pipes`, of a pipe.

    OSError when it cannot be read or has more than `limit` bytes. If the first `HEAD_SIZE` bytes
    show that a file is not `wanted`, no more of it is read.
    """
    try:
        with Incoming(path, pipes=pipes) as stream:
            head = stream.read(HEAD_SIZE)
            if wanted is not None and not wanted(head):
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
    """What a file of more than `limit` bytes is refused with."""
    return RefusedError(errno.EFBIG, f"it has more than {limit} bytes")


def is_text(head: bytes) -> bool:
    """Whether a file that starts so may be text."""
    return b"\0" not in head


def is_elf(head: bytes) -> bool:
    """Whether a file that starts so says that it is ELF."""
    return head[:4] == b"\x7fELF"
