"""Writing text to a terminal or log that may be closed, full, or of a narrow encoding."""

from __future__ import annotations

import errno
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import BinaryIO, TextIO

# C0 controls, DEL, C1 controls, what turns the direction of text around it, what ends a line, and
# surrogates, which stand for bytes that are not UTF-8. They would end the line, reach the terminal
# as commands, or show other text than there is.
_ESCAPED = "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
# What errors name in the place of a file.
STANDARD_OUTPUT = "standard output"
_SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def printable(text: str | bytes) -> str:
    """A name, or a text with names, for people: on one line, and nothing that a terminal obeys.

    Whatever comes from an input, or from the name of a file, passes through here on its way to
    people; formats for programs have escapes of their own.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    if text.isprintable():
        return text
    import re  # needed by no link with decent names

    return re.sub(_ESCAPED, _escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code < 0xDD00:
        code -= 0xDC00  # the byte
    return _SHORT.get(match[0]) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


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
    try:
        _put(_standard_output(), text)
    except OSError as error:
        error.filename = STANDARD_OUTPUT
        raise


def show_bytes(data: bytes) -> None:
    """The same for what is not text; also an OSError where standard output takes text alone."""
    try:
        stream = _standard_output()
        stream.flush()
        if not hasattr(stream, "buffer"):
            raise OSError(errno.EINVAL, "takes text alone")
        _write_whole(stream.buffer, data)
    except OSError as error:
        error.filename = STANDARD_OUTPUT
        raise


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
