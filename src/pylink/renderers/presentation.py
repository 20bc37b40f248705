"""The settings of the text form: color, width, context."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TextIO

# Columns of a line if there is no terminal, and default distance of tab stops.
WIDTH = 80
TAB_WIDTH = 8


class Presentation:
    """The look of records (diagnostics and their notes). No setting changes which are shown.

    `color` is one of auto, always and never. `numbers` shows the numbers by which options name
    diagnostics. `width` is the terminal's width in columns, of which the last stays free; with 0,
    lines are not wrapped. `tab_width` is the distance of the tab stops in source lines, in columns.
    `context` shows source lines; `brief` drops them and the blank lines between records. `summary`
    writes a line at the end if there are errors, such as `1 error detected in the link of "out".`:
    `task` is the word "link" there, and `subject`, usually the output file, the name in quotes.
    `target` is the architecture that -report-arch appends to each message.
    """

    __slots__ = (
        "brief", "color", "context", "numbers", "subject", "summary", "tab_width", "target", "task",
        "width",
    )  # fmt: skip

    def __init__(
        self,
        *,
        color: str = "auto",
        numbers: bool = False,
        width: int = WIDTH,
        tab_width: int = TAB_WIDTH,
        context: bool = True,
        brief: bool = False,
        summary: bool = True,
        subject: str | None = None,
        task: str = "link",
        target: str | None = None,
    ) -> None:
        self.color: Final = color
        self.numbers: Final = numbers
        self.width: Final = width
        self.tab_width: Final = tab_width
        self.context: Final = context
        self.brief: Final = brief
        self.summary: Final = summary
        self.subject: Final = subject
        self.task: Final = task
        self.target: Final = target


def terminal_columns(stream: TextIO | None) -> int:
    """Return the width of a terminal in columns, or WIDTH for other streams.

    The variable COLUMNS has no effect: output depends on inputs and options alone.
    """
    try:
        return (os.get_terminal_size(stream.fileno()).columns if stream else 0) or WIDTH
    except (OSError, ValueError):  # the stream is not a terminal, or it is closed
        return WIDTH
