"""Colors in diagnostic text: two-byte markers during layout, terminal escapes in the output.

A marker is ESC and a byte from 1 to 5, like in the EDG front end. The byte 1 ends a color; each of
the others is a class, such as error, of the text after the marker. Markers take no columns, so
colored and plain text wrap at the same places: colored output without its escapes is exactly the
plain output.
"""

from __future__ import annotations

import os
import re

from pylink.diagnostics.stream import is_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

ESC = "\x1b"
# Markers. RESET ends a color.
RESET = ESC + "\x01"
ERROR = ESC + "\x02"
WARNING = ESC + "\x03"
NOTE = ESC + "\x04"
LOCUS = ESC + "\x05"  # a place in a file, or a quoted name: both are bold

# By marker: the parameters of its terminal escape, which are the defaults of the CUDA 13.0 front
# end. RESET has the parameter 0.
_SGR = {ERROR: "01;31", WARNING: "01;35", NOTE: "01;36", LOCUS: "01"}
_MARKER = re.compile(ESC + "[\x01-\x05]")


def to_terminal(text: str) -> str:
    """Replace markers by terminal escapes: `ESC[0m` resets, `ESC[<parameters>m` sets a color."""
    return _MARKER.sub(lambda marker: f"{ESC}[{_SGR.get(marker[0], '0')}m", text)


def is_wanted(when: str, stream: TextIO | None) -> bool:
    """Return whether to color output to a stream; `when` is `always`, `never`, or `auto`.

    `auto` colors a terminal, unless NO_COLOR is set and not empty, or the terminal is dumb.
    """
    if when != "auto":
        return when == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return is_terminal(stream)
