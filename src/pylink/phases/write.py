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
    try:
        if _is_special(path):
            descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        else:
            _replace(path, final.image)
            return
    except (OSError, ValueError):
        sink.fatal("cannot-open-output", file=path)
    try:
        _write_all(descriptor, final.image)
    except OSError as error:
        sink.fatal("cannot-write-file", file=path, reason=error.strerror or str(error))


def _is_special(path: str) -> bool:
    """Devices and pipes are written to; a rename would put a file in their place."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _replace(path: str, image: bytes) -> None:
    """Write beside the target of `path`, then rename over it: existing files stay until then."""
    target = os.path.realpath(path)
    if os.path.isdir(target):
        raise IsADirectoryError(path)
    if os.path.exists(target) and not os.access(target, os.W_OK):
        raise PermissionError(path)
    temporary = f"{target}.{os.getpid()}.{id(image):x}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        _write_all(descriptor, image)
        os.replace(temporary, target)
    except OSError:
        os.unlink(temporary)
        raise


def _write_all(descriptor: int, image: bytes) -> None:
    try:
        rest = memoryview(image)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    finally:
        os.close(descriptor)
