"""Files that appear atomically, whatever ends the process that writes them.

The contents go to a file without a name, which the system removes with the process. It gets its
name when it is complete: at once where there was no such file, else under a temporary name
beside the old one and from there by rename, for no call gives a name that is taken. A process that
is killed between these two calls leaves the temporary name; the next one that writes the same file
finds and removes it (`temporary`).

A file system may say only at close that there was no room for the file, as NFS does of a quota. So
a descriptor of it is closed before the file gets its name (`closing`).

Where that cannot be, it is done the next best way. File systems without nameless files have the
temporary name from the start. A file that may be written but not replaced (its folder may not be
written, or it is a mount) is overwritten, after room for all of it is reserved.
"""

from __future__ import annotations

import errno
import os
import stat

from pylink.diagnostics.errors import reason_of
from pylink.files.closing import settle
from pylink.files.special import open_special
from pylink.files.temporary import (
    MOST_NAMES,
    clean,
    has_name,
    hold,
    let_go,
    lock,
    remove_leftover,
    temporary_name,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from pylink.diagnostics import Sink

# What the system says where nothing can be made beside a file, or the file not be replaced.
_IRREPLACEABLE = (errno.EACCES, errno.EPERM, errno.EBUSY, errno.EROFS)
# What it says of a nameless file where there are none.
_NO_NAMELESS = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL)

# Bytes of a call. The kernel keeps a file in pieces as large as the writes were, and one of 2 MiB
# may be memory that a hypervisor has to give back first (`base/hugepages.pxd`): 86 MB at once took
# 16 ms or 200, in such steps 15 or 18.
_WRITE_SIZE = 1 << 20

_FLAGS = os.O_RDWR | os.O_CLOEXEC


class WholeFile:
    """A file that stays as it was until `commit`.

    Making one is an OSError or a ValueError where the file could not be made or replaced. Devices,
    pipes and open descriptors are written to directly: a rename would put a file in their place.
    """

    __slots__ = ("_descriptor", "_folder", "_key", "_mode", "_name", "_overwrites", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._folder = -1
        self._descriptor = -1
        self._key: tuple[int, int, bytes] | None = None  # of the temporary name
        self._overwrites = False
        self._mode: int | None = None
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
        """Open what takes the contents, and the folder that the file is to appear in."""
        if os.path.basename(path) in ("", ".", ".."):
            reason = errno.EISDIR if path else errno.ENOENT
            raise OSError(reason, os.strerror(reason))
        target = os.path.realpath(path) if os.path.islink(path) else path
        self._name = os.fsencode(os.path.basename(target))
        try:  # no file that may not be written is replaced
            descriptor = os.open(target, os.O_WRONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            pass
        else:
            self._mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
            os.close(descriptor)
        self._folder = os.open(os.path.dirname(target) or ".", os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._open_temporary()
        except OSError as error:
            if self._mode is None or error.errno not in _IRREPLACEABLE:
                raise
            self._descriptor = os.memfd_create("pylink-output")
            self._overwrites = True

    def _open_temporary(self) -> None:
        """Open a file without a name, or with a temporary name where there is no such thing."""
        try:
            self._descriptor = os.open(".", _FLAGS | os.O_TMPFILE, 0o666, dir_fd=self._folder)
        except OSError as error:
            if error.errno not in _NO_NAMELESS:
                raise
            self._take_name()
        else:
            clean(self._folder, self._name)
        self._set_mode()

    def _set_mode(self) -> None:
        if self._mode is not None:
            os.fchmod(self._descriptor, self._mode)

    def write(self, data: bytes) -> None:
        """Write all of it; OSError, after which only `discard` makes sense."""
        _write_all(self._descriptor, data)

    @property
    def unfinished(self) -> int | None:
        """The empty file that will be renamed, to be filled by others; None if all is copied."""
        return None if self._folder < 0 or self._overwrites else self._descriptor

    def commit(self) -> None:
        """Put the file in its place; OSError, with nothing left behind, when that fails."""
        try:
            if self._overwrites:
                self._overwrite()
            elif self._folder >= 0:
                self._appear()
                return
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)
        finally:
            self.discard()

    def _appear(self) -> None:
        """Give the contents their name."""
        if self._key is None:
            settle(self._descriptor)
            try:
                if self._mode is None and self._link(self._name):
                    return
                self._take_name()
            except OSError:  # no /proc, or a file system that keeps what is nameless so
                self._copy_temporary()
                self._settle_named()
        else:
            self._settle_named()
        assert self._key is not None
        try:
            os.rename(self._key[2], self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except OSError as error:
            if error.errno not in _IRREPLACEABLE:
                raise
            self._overwrite()
            self._drop_name()
        else:
            self._let_go()

    def _link(self, name: bytes) -> bool:
        """Give the nameless file a name; False when that is taken."""
        try:
            # The link in /proc must be followed, which os.link does by flag only.
            os.link(
                f"/proc/self/fd/{self._descriptor}",
                name,
                src_dir_fd=0,
                dst_dir_fd=self._folder,
                follow_symlinks=True,
            )
        except FileExistsError:
            return False
        return True

    def _take_name(self) -> None:
        """Give the file the first temporary name that is free; open one there if there is none."""
        claim = self._make if self._descriptor < 0 else self._name_temporary
        for number in range(MOST_NAMES):
            name = temporary_name(self._name, number)
            self._key = hold(self._folder, name, self)
            if self._key is None:
                continue
            taken = False
            try:
                taken = claim(name)
                if not taken and remove_leftover(name, self._folder):
                    taken = claim(name)
                if taken:
                    return
            finally:
                if not taken:
                    self._drop_name()
        raise OSError(errno.EEXIST, "all temporary names beside it are taken")

    def _name_temporary(self, name: bytes) -> bool:
        lock(self._descriptor)
        return self._link(name)

    def _make(self, name: bytes) -> bool:
        """Open a temporary file of this name; False when the name is taken."""
        try:
            temporary = os.open(name, _FLAGS | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=self._folder)
        except FileExistsError:
            return False
        # A process that was faster than the lock took the file for a leftover.
        if lock(temporary) is False or not has_name(temporary, name, self._folder):
            os.close(temporary)
            return False
        self._descriptor = temporary
        return True

    def _copy_temporary(self) -> None:
        """Go on with a file that has a temporary name."""
        nameless, self._descriptor = self._descriptor, -1
        try:
            self._take_name()
            self._set_mode()
            _copy(nameless, self._descriptor)
        finally:
            os.close(nameless)

    def _settle_named(self) -> None:
        """As `settle`, for a file with a temporary name."""
        while True:
            assert self._key is not None
            settle(self._descriptor, self._folder)
            # That was the end of the lock on the file: a faster process took it for a leftover.
            if lock(self._descriptor) is not False and has_name(
                self._descriptor, self._key[2], self._folder
            ):
                return
            self._let_go()
            self._copy_temporary()

    def _overwrite(self) -> None:
        """Write the contents into the file that is there; OSError, as a rule with it as it was."""
        target = os.open(self._name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=self._folder)
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

    def _let_go(self) -> None:
        """Forget the temporary name."""
        if self._key is not None:
            let_go(self._key)
            self._key = None

    def _drop_name(self) -> None:
        """Remove the temporary name, if it is that of the file.

        It is not where nothing has it yet, nor after an interrupt right after the rename.
        """
        if self._key is not None:
            name = self._key[2]
            if self._descriptor >= 0 and has_name(self._descriptor, name, self._folder):
                os.unlink(name, dir_fd=self._folder)
            self._let_go()

    def discard(self) -> None:
        """Remove what there is of a file that was not committed; a second call does nothing."""
        try:
            self._drop_name()
        finally:
            for descriptor in (self._descriptor, self._folder):
                if descriptor >= 0:
                    _close(descriptor)
            self._descriptor = self._folder = -1


def write_whole(path: str, data: bytes) -> None:
    """Make or replace a file in one step; OSError or ValueError, with the old one intact."""
    file = WholeFile(path)
    try:
        file.write(data)
        file.commit()
    finally:
        file.discard()


def refuse_output(path: str, error: Exception, sink: Sink) -> NoReturn:
    """Report that an output cannot be made, with what the system says."""
    from pylink.diagnostics.record import note

    hint = note("file-reason", reason=reason_of(error))
    sink.fatal("cannot-open-output", file=path, hints=[hint])


def write_output(path: str, data: bytes, sink: Sink) -> None:
    """Make or replace a file that is what the command is for; what goes wrong is fatal."""
    try:
        file = WholeFile(path)
    except (OSError, ValueError) as error:
        refuse_output(path, error, sink)
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


def _close(descriptor: int) -> None:
    """Close what was settled or is not kept: of an error there nobody needs to know."""
    try:
        os.close(descriptor)
    except OSError:
        return


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest[:_WRITE_SIZE]) :]


def _copy(source: int, target: int) -> None:
    offset = 0
    while chunk := os.pread(source, _WRITE_SIZE, offset):
        _write_all(target, chunk)
        offset += len(chunk)
