"""How diagnostics look to people."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

# Columns where there is no terminal to ask.
WIDTH = 80

TAB_WIDTH = 8


class Presentation:
    """How records look; nothing of it changes which records there are.

    `color` is one of auto, always and never. `numbers` shows the numbers that options take.
    `width` is that of the terminal in columns, of which one stays free where there are more; 0
    does not wrap. `tab_width` is the distance of the tab stops in source lines, in columns.
    `context` shows source lines; `brief` drops them and the blank lines between records. `summary`
    writes a line at the end, which names `subject`, usually the output file; `task` is the word for
    what was done to it. `target` is the architecture that -report-arch appends to each message.
    """

    __slots__ = (
        "brief",
        "color",
        "context",
        "numbers",
        "subject",
        "summary",
        "tab_width",
        "target",
        "task",
        "width",
    )

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
