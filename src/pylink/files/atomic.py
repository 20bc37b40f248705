"""Files that appear atomically, whatever ends the process that writes them.

The contents go to a file without a name, which the system removes with the process. It gets its
name when it is complete: at once if no such file exists. Else it gets a temporary name beside the
old file and is renamed, since no system call links a nameless file over an existing name. A process
that is killed between these two calls leaves the temporary name. The next process that writes the
same file finds and removes it (`temporary`).

A file system may report only at close that there is no room for the file, as NFS does for a quota.
So a duplicate of the file's descriptor is closed before the file gets its name (`closing`).

There are two fallbacks. On file systems without nameless files, the file has its temporary name
from the start. A file that may be written but not replaced (its directory may not be written, or it
is a mount) is overwritten, after room for all of it is reserved.
"""

from __future__ import annotations

import errno
import os
import stat

from pylink.diagnostics.errors import reason_of
from pylink.files.closing import raise_close_errors
from pylink.files.special import open_special
from pylink.files.temporary import (
    MOST_NAMES,
    has_name,
    hold,
    lock,
    release,
    remove_first_leftover,
    remove_leftover,
    temporary_name,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from pylink.diagnostics import Sink

# Errors if no file can be created beside the old one, or the old one cannot be replaced.
_IRREPLACEABLE = (errno.EACCES, errno.EPERM, errno.EBUSY, errno.EROFS)
# Errors of open(O_TMPFILE) on file systems without nameless files.
_NO_NAMELESS = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL)

# Bytes of one write call. The page cache keeps a file in pieces as large as the writes were, and a
# piece of 2 MiB may be memory that a hypervisor must provide first (`base/hugepages.pxd`). 86 MB in
# one call took 16 or 200 ms, in calls of this size 15 or 18 ms.
_WRITE_SIZE = 1 << 20

_FLAGS = os.O_RDWR | os.O_CLOEXEC


class WholeFile:
    """An output file: the old contents stay until `commit`.

    The constructor raises OSError or ValueError if the file can neither be created nor replaced nor
    overwritten. Devices, pipes and open descriptors are written directly: a rename would put a file
    in their place.
    """

    __slots__ = ("_descriptor", "_directory", "_key", "_mode", "_name", "_overwrites", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._directory = -1
        self._descriptor = -1
        self._key: tuple[int, int, bytes] | None = None  # of the temporary name (see `hold`)
        self._overwrites = False  # the old file is written to, since it cannot be replaced
        self._mode: int | None = None  # of the old file, if there is one
        try:
            descriptor = open_special(path)
            if descriptor is None:
                self._prepare(path)
            else:
                self._descriptor = descriptor
        except OSError as error:
            self.discard()
            error.filename = path  # neither a temporary name nor where a link leads
            raise

    def _prepare(self, path: str) -> None:
        """Open the directory of the file, and a temporary file for the contents.

        The contents go to memory if the old file can be written but not replaced.
        """
        if os.path.basename(path) in ("", ".", ".."):
            reason = errno.EISDIR if path else errno.ENOENT
            raise OSError(reason, os.strerror(reason))
        target = os.path.realpath(path) if os.path.islink(path) else path
        self._name = os.fsencode(os.path.basename(target))
        try:  # a read-only file must not be replaced
            descriptor = os.open(target, os.O_WRONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            pass
        else:
            self._mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
            os.close(descriptor)
        self._directory = os.open(os.path.dirname(target) or ".", os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._open_temporary()
        except OSError as error:
            if self._mode is None or error.errno not in _IRREPLACEABLE:
                raise
            self._descriptor = os.memfd_create("pylink-output")
            self._overwrites = True

    def _open_temporary(self) -> None:
        """Open a file without a name, or with a temporary name if the file system needs one."""
        try:
            self._descriptor = os.open(".", _FLAGS | os.O_TMPFILE, 0o666, dir_fd=self._directory)
        except OSError as error:
            if error.errno not in _NO_NAMELESS:
                raise
            self._claim_temporary_name()
        else:
            remove_first_leftover(self._directory, self._name)
        self._set_mode()

    def _set_mode(self) -> None:
        """Give the temporary file the mode of the existing file, if there is one."""
        if self._mode is not None:
            os.fchmod(self._descriptor, self._mode)

    def write(self, data: bytes) -> None:
        """Write all of `data`. OSError on failure; then only `discard` makes sense."""
        write_all(self._descriptor, data)

    @property
    def new_descriptor(self) -> int | None:
        """The descriptor of the file that `commit` will give its name.

        None for a device, pipe or open descriptor, and for a file that `commit` overwrites.
        """
        return None if self._directory < 0 or self._overwrites else self._descriptor

    def commit(self) -> None:
        """Put the file in its place; OSError on failure, with no temporary file left."""
        try:
            if self._overwrites:
                self._overwrite()
            elif self._directory >= 0:
                self._put_in_place()
                return
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)
        finally:
            self.discard()

    def _put_in_place(self) -> None:
        """Give the complete file its name, by link or rename, or else overwrite the old file."""
        if self._key is None:
            raise_close_errors(self._descriptor)
            try:
                if self._mode is None and self._link(self._name):
                    return
                self._claim_temporary_name()
            except OSError:  # no /proc, or the file system cannot name a nameless file
                self._copy_temporary()
                self._flush_temporary()
        else:
            self._flush_temporary()
        assert self._key is not None
        try:
            os.rename(
                self._key[2], self._name, src_dir_fd=self._directory, dst_dir_fd=self._directory
            )
        except OSError as error:
            if error.errno not in _IRREPLACEABLE:
                raise
            self._overwrite()
            self._drop_name()
        else:
            self._release_name()

    def _link(self, name: bytes) -> bool:
        """Give the nameless file a name; False if the name exists."""
        try:
            # The link in /proc must be followed, which os.link does by flag only.
            os.link(
                f"/proc/self/fd/{self._descriptor}",
                name,
                src_dir_fd=0,
                dst_dir_fd=self._directory,
                follow_symlinks=True,
            )
        except FileExistsError:
            return False
        return True

    def _claim_temporary_name(self) -> None:
        """Give the file the first free temporary name.

        If no file is open yet, one of that name is created. OSError if all names are taken.
        """
        claim = self._create_temporary if self._descriptor < 0 else self._name_temporary
        for number in range(MOST_NAMES):
            name = temporary_name(self._name, number)
            self._key = hold(self._directory, name, self)
            if self._key is None:
                continue
            claimed = False
            try:
                claimed = claim(name)
                if not claimed and remove_leftover(name, self._directory):
                    claimed = claim(name)
                if claimed:
                    return
            finally:
                if not claimed:
                    self._drop_name()
        raise OSError(errno.EEXIST, "all temporary names beside it are taken")

    def _name_temporary(self, name: bytes) -> bool:
        """Give the nameless file this temporary name; False if the name is in use."""
        lock(self._descriptor)
        return self._link(name)

    def _create_temporary(self, name: bytes) -> bool:
        """Create a temporary file of this name; False if the name is in use."""
        try:
            temporary = os.open(
                name, _FLAGS | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=self._directory
            )
        except FileExistsError:
            return False
        # Before the lock was held, another process may have removed the file as a leftover.
        if lock(temporary) is False or not has_name(temporary, name, self._directory):
            os.close(temporary)
            return False
        self._descriptor = temporary
        return True

    def _copy_temporary(self) -> None:
        """Copy the contents to a new file that has a temporary name."""
        nameless, self._descriptor = self._descriptor, -1
        try:
            self._claim_temporary_name()
            self._set_mode()
            _copy(nameless, self._descriptor)
        finally:
            os.close(nameless)

    def _flush_temporary(self) -> None:
        """Let the file system flush the temporary file; write it again if a process removed it."""
        while True:
            assert self._key is not None
            raise_close_errors(self._descriptor, self._directory)
            # The close dropped the lock, so another process may have removed the file.
            if lock(self._descriptor) is not False and has_name(
                self._descriptor, self._key[2], self._directory
            ):
                return
            self._release_name()
            self._copy_temporary()

    def _overwrite(self) -> None:
        """Overwrite the existing file. OSError on failure; it is unchanged if room was lacking."""
        target = os.open(self._name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=self._directory)
        try:
            before, size = os.fstat(target).st_size, os.fstat(self._descriptor).st_size
            try:
                os.posix_fallocate(target, 0, max(size, 1))
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                    os.ftruncate(target, before)
                    raise
            _copy(self._descriptor, target)
            os.ftruncate(target, size)
        finally:
            os.close(target)

    def _release_name(self) -> None:
        """Release the temporary name for other links of this process."""
        if self._key is not None:
            release(self._key)
            self._key = None

    def _drop_name(self) -> None:
        """Remove the temporary name if it belongs to the file.

        It does not belong to it before the file was created, nor after an interrupt right after the
        rename.
        """
        if self._key is not None:
            name = self._key[2]
            if self._descriptor >= 0 and has_name(self._descriptor, name, self._directory):
                os.unlink(name, dir_fd=self._directory)
            self._release_name()

    def discard(self) -> None:
        """Remove a file that was not committed; a second call does nothing."""
        try:
            self._drop_name()
        finally:
            for descriptor in (self._descriptor, self._directory):
                if descriptor >= 0:
                    _close(descriptor)
            self._descriptor = self._directory = -1


def write_whole(path: str, data: bytes) -> None:
    """Create or replace a file atomically; OSError or ValueError if that fails.

    The old file stays intact then, unless it was overwritten in place and that failed halfway.
    """
    file = WholeFile(path)
    try:
        file.write(data)
        file.commit()
    finally:
        file.discard()


def refuse_output(path: str, error: Exception, sink: Sink) -> NoReturn:
    """Report, with the system's reason, that an output cannot be opened."""
    from pylink.diagnostics.record import note

    hint = note("file-reason", reason=reason_of(error))
    sink.fatal("cannot-open-output", file=path, hints=[hint])


def open_output(path: str, sink: Sink) -> WholeFile:
    """Open an output of a command; a fatal diagnostic if that fails."""
    try:
        return WholeFile(path)
    except (OSError, ValueError) as error:
        refuse_output(path, error, sink)


def write_output(path: str, data: bytes, sink: Sink) -> None:
    """Create or replace the output of a command; any failure is a fatal diagnostic."""
    file = open_output(path, sink)
    try:
        file.write(data)
        file.commit()
    except OSError as error:
        sink.fatal("cannot-write-file", file=path, reason=reason_of(error))
    finally:
        file.discard()


def write_text(path: str | None, text: str, sink: Sink) -> None:
    """Write a text output of a command to a file, or to standard output if `path` is None.

    Any failure is a fatal diagnostic.
    """
    from pylink.diagnostics.stream import show, to_bytes

    if path is not None:
        write_output(path, to_bytes(text), sink)
        return
    try:
        show(text)
    except OSError as error:
        sink.fatal("cannot-write-file", file="standard output", reason=reason_of(error))


def has_contents(path: str, data: bytes) -> bool:
    """Return whether `path` is a regular file with exactly these contents."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode) or os.path.getsize(path) != len(data):
            return False
        with open(path, "rb") as stream:
            return stream.read() == data
    except (OSError, ValueError):
        return False


def _close(descriptor: int) -> None:
    """Close a descriptor whose errors were reported already, or whose file is dropped."""
    try:
        os.close(descriptor)
    except OSError:
        return


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data` at the position of the descriptor."""
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining[:_WRITE_SIZE]) :]


def _copy(source: int, target: int) -> None:
    """Copy a file from its start to the position of the descriptor `target`."""
    offset = 0
    while chunk := os.pread(source, _WRITE_SIZE, offset):
        write_all(target, chunk)
        offset += len(chunk)
