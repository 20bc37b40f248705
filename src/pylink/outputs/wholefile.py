"""Files that appear whole or not at all: written under another name, then renamed."""

from __future__ import annotations

import errno
import os
import stat

from pylink.errors import reason_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink


class WholeFile:
    """A file that stays as it was until `commit`.

    Making one is an OSError or a ValueError where the file could not be made or replaced. Devices
    and pipes are written to directly: a rename would put a file in their place.
    """

    __slots__ = ("_descriptor", "_target", "_temporary")

    def __init__(self, path: str) -> None:
        self._temporary: str | None = None
        if _is_special(path):
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        else:
            self._target = os.path.realpath(path)
            temporary = f"{self._target}.{os.getpid()}.{id(self):x}.tmp"
            try:
                self._descriptor = _create_beside(self._target, temporary)
            except OSError as error:
                error.filename = path  # neither the temporary name nor where a link leads
                raise
            self._temporary = temporary

    def write(self, data: bytes) -> None:
        """Write all of it; OSError, after which only `discard` makes sense."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def commit(self) -> None:
        """Put the file in its place; OSError, with nothing left behind, when that fails."""
        try:
            self._close()
            if self._temporary is not None:
                os.replace(self._temporary, self._target)
                self._temporary = None
        finally:
            self.discard()

    def discard(self) -> None:
        """Leave nothing behind of a file that was not committed; a second call does nothing."""
        try:
            self._close()
        finally:
            if self._temporary is not None:
                os.unlink(self._temporary)
                self._temporary = None

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def write_whole(path: str, data: bytes) -> None:
    """Make or replace a file in one step; OSError or ValueError, with the old one intact."""
    file = WholeFile(path)
    try:
        file.write(data)
        file.commit()
    finally:
        file.discard()


def write_output(path: str, data: bytes, sink: Sink) -> None:
    """Make or replace a file that is what the command is for; what goes wrong is fatal."""
    try:
        file = WholeFile(path)
    except (OSError, ValueError):
        sink.fatal("cannot-open-output", file=path)
    try:
        file.write(data)
        file.commit()
    except OSError as error:
        sink.fatal("cannot-write-file", file=path, reason=reason_of(error))
    finally:
        file.discard()


def holds(path: str, data: bytes) -> bool:
    """Whether `path` is a regular file with exactly these contents."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode) or os.path.getsize(path) != len(data):
            return False
        with open(path, "rb") as stream:
            return stream.read() == data
    except (OSError, ValueError):
        return False


def _is_special(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _create_beside(target: str, temporary: str) -> int:
    """Open a new file that will be renamed to `target`: an existing file stays until then."""
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    if mode is not None and not os.access(target, os.W_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    if mode is not None:
        os.fchmod(descriptor, stat.S_IMODE(mode))
    return descriptor
