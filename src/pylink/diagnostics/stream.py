"""Writing text to a terminal or log that may be closed, full, or of a narrow encoding."""

from __future__ import annotations

import errno
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import BinaryIO, TextIO

# C0 controls, DEL, C1 controls, marks that change the direction of text, ends of lines, and
# surrogates, which mostly stand for bytes that are not UTF-8. Unescaped they would end the line,
# be commands for the terminal, make the text look different, or fail to encode.
_ESCAPED = "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
# The name of standard output in messages about errors.
STANDARD_OUTPUT = "standard output"
_SHORT_ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def printable(text: str | bytes) -> str:
    """Return a name, or a text with names, for people: on one line and without terminal commands.

    Every text from an input and every file name passes through here before it is shown. Formats for
    programs have their own escapes.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    if text.isprintable():
        return text
    import re  # slow to import, and rarely needed

    return re.sub(_ESCAPED, _escape, text)


def _escape(match: re.Match[str]) -> str:
    """Return the escape sequence of a character.

    A surrogate of `surrogateescape` is escaped as the byte that it stands for.
    """
    code = ord(match[0])
    if 0xDC80 <= code < 0xDD00:
        code -= 0xDC00  # the byte
    return _SHORT_ESCAPES.get(match[0]) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is an open terminal."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def to_bytes(text: str) -> bytes:
    """Return the text as UTF-8; surrogates of surrogateescape become the original bytes again."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a surrogate in a caller's text that stands for no byte
        return text.encode("utf-8", "backslashreplace")


def write(stream: TextIO | None, text: str) -> bool:
    """Write a text and flush; False if that fails. A `stream` of None is the present stderr.

    A stream that cannot be written (closed, full, gone) loses the text but does not end the link.
    """
    if stream is None:
        stream = sys.stderr
        if stream is None:  # the process was started with descriptor 2 closed
            return False
    try:
        _write_and_flush(stream, text)
    except (OSError, ValueError):
        return False
    return True


def show(text: str) -> None:
    """Write the output of a command to standard output; OSError if not all was written."""
    try:
        _write_and_flush(_standard_output(), text)
    except OSError as error:
        error.filename = STANDARD_OUTPUT
        raise


def show_bytes(data: bytes) -> None:
    """Write bytes to standard output; OSError if not all was written or it accepts only text."""
    try:
        stream = _standard_output()
        stream.flush()
        if not hasattr(stream, "buffer"):
            raise OSError(errno.EINVAL, "accepts only text")
        _write_whole(stream.buffer, data)
    except OSError as error:
        error.filename = STANDARD_OUTPUT
        raise


def _standard_output() -> TextIO:
    """Return the present standard output; OSError if it is closed."""
    if sys.stdout is None or sys.stdout.closed:
        raise OSError(errno.EBADF, "closed")
    return sys.stdout


def _write_and_flush(stream: TextIO, text: str) -> None:
    """Write a text and flush; OSError, or ValueError if closed or if the text cannot be encoded."""
    is_standard = stream is sys.stderr or stream is sys.stdout
    stream.flush()
    buffer = getattr(stream, "buffer", None)
    if buffer is None or (text.isascii() and not is_standard):
        stream.write(text)
        stream.flush()
    elif is_standard:
        _write_whole(buffer, to_bytes(text))
    else:
        buffer.write(to_bytes(text))
        buffer.flush()


def _write_whole(buffer: BinaryIO, data: bytes) -> None:
    """Write without the buffer, so that no text of a failed write remains in it.

    The interpreter would try to write that at its exit, and end with status 120.
    """
    raw: BinaryIO = getattr(buffer, "raw", buffer)
    while data:
        written_size = raw.write(data)
        if not written_size:
            raise BlockingIOError(errno.EAGAIN, "the stream would block")
        data = data[written_size:]
