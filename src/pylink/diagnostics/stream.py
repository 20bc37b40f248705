"""Writing text to a terminal or log that may be closed, full, or of a narrow encoding."""

from __future__ import annotations

import errno
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO, TextIO

# C0 controls, DEL and C1 controls: they end the line, or reach the terminal as commands.
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_CONTROL.update({9: "\\t", 10: "\\n", 13: "\\r"})


def one_line(text: str) -> str:
    """The text with control characters written as escapes, so that it stays on one line."""
    return text if text.isprintable() else text.translate(_CONTROL)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream is an open terminal."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def to_bytes(text: str) -> bytes:
    """UTF-8; the bytes of a name that are none, decoded with surrogateescape, come out again."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a surrogate that stands for no byte, from a caller's own text
        return text.encode("utf-8", "backslashreplace")


def write(stream: TextIO | None, text: str) -> bool:
    """Write and flush; False when the stream does not take it.

    None is the standard error of this moment. A stream that cannot be written (closed, full, gone)
    costs the text, never the link.
    """
    if stream is None:
        stream = sys.stderr
        if stream is None:  # the process was started with descriptor 2 closed
            return False
    try:
        _put(stream, text)
    except (OSError, ValueError):
        return False
    return True


def show(text: str) -> None:
    """Write what a command was asked for to standard output; OSError when not all gets there."""
    _put(_standard_output(), text)


def show_bytes(data: bytes) -> None:
    """The same for what is no text; also an OSError where standard output takes text alone."""
    stream = _standard_output()
    stream.flush()
    if not hasattr(stream, "buffer"):
        raise OSError(errno.EINVAL, "takes text alone")
    _write_whole(stream.buffer, data)


def _standard_output() -> TextIO:
    if sys.stdout is None or sys.stdout.closed:
        raise OSError(errno.EBADF, "closed")
    return sys.stdout


def _put(stream: TextIO, text: str) -> None:
    """Write and flush; OSError, or ValueError for a closed stream."""
    standard = stream is sys.stderr or stream is sys.stdout
    stream.flush()
    buffer = getattr(stream, "buffer", None)
    if buffer is None or (text.isascii() and not standard):
        stream.write(text)
        stream.flush()
    elif standard:
        _write_whole(buffer, to_bytes(text))
    else:
        buffer.write(to_bytes(text))
        buffer.flush()


def _write_whole(buffer: BinaryIO, data: bytes) -> None:
    """Write past the buffer; the interpreter would try again at exit what failed and stayed there.

    It would then end with status 120, whatever became of the link.
    """
    raw: BinaryIO = getattr(buffer, "raw", buffer)
    while data:
        done = raw.write(data)
        if not done:
            raise BlockingIOError(errno.EAGAIN, "the stream would block")
        data = data[done:]
