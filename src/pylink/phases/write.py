"""Phase write: the output appears whole or not at all."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.phases.finalize import Final


def write(final: Final, sink: Sink) -> None:
    """Write the image to the output path, if there is one."""
    path = final.job.options.output_file
    if path is None:
        return
    temporary = None
    try:
        if _is_special(path):
            descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        else:
            target = os.path.realpath(path)
            temporary = f"{target}.{os.getpid()}.{id(final):x}.tmp"
            descriptor = _create_beside(target, temporary)
    except (OSError, ValueError):
        sink.fatal("cannot-open-output", file=path)
    try:
        _write_all(descriptor, final.image)
        if temporary is not None:
            os.replace(temporary, target)
            temporary = None
    except OSError as error:
        sink.fatal("cannot-write-file", file=path, reason=error.strerror or str(error))
    finally:
        if temporary is not None:
            os.unlink(temporary)


def _is_special(path: str) -> bool:
    """Devices and pipes are written to; a rename would put a file in their place."""
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
        raise IsADirectoryError(target)
    if mode is not None and not os.access(target, os.W_OK):
        raise PermissionError(target)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    if mode is not None:
        os.fchmod(descriptor, stat.S_IMODE(mode))
    return descriptor


def _write_all(descriptor: int, image: bytes) -> None:
    try:
        rest = memoryview(image)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    finally:
        os.close(descriptor)
