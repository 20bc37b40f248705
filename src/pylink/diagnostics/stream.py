"""Writing text to a terminal or log that may be closed, full, or of a narrow encoding."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

# C0 controls, DEL and C1 controls: they end the line, or reach the terminal as commands.
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_CONTROL.update({9: "\\t", 10: "\\n", 13: "\\r"})


def one_line(text: str) -> str:
    """The text with control characters written as escapes, so that it stays on one line."""
    return text if text.isprintable() else text.translate(_CONTROL)


def write(stream: TextIO | None, text: str) -> bool:
    """Write and flush; False when the stream does not take it.

    None is the standard error of this moment. Names in a cubin are bytes: those that are no UTF-8
    were decoded with surrogateescape and go out as the same bytes. A stream that cannot be written
    (closed, full, gone) costs the text, never the link.
    """
    if stream is None:
        stream = sys.stderr
        if stream is None:  # the process was started with descriptor 2 closed
            return False
    try:
        raw = None if text.isascii() else getattr(stream, "buffer", None)
        if raw is None:
            stream.write(text)
        else:
            stream.flush()
            raw.write(text.encode("utf-8", "surrogateescape"))
        stream.flush()
    except (OSError, ValueError):
        return False
    return True
