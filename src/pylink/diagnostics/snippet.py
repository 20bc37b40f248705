"""The source line of a diagnostic with a caret and tildes below the place."""

from __future__ import annotations

from pylink.diagnostics.stream import printable
from pylink.diagnostics.wrap import cells

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics.record import Source

_INDENT = "  "


def snippet(text: str, source: Source, tab_width: int = 8) -> str:
    """The line `text` of a place and the carets below it, each with its newline.

    Columns count code points; the caret line counts terminal cells of the text as shown, with tabs
    expanded to multiples of the tab width, that of the record if it has one. A place without a
    column has no caret line.
    """
    shown, starts = _expand(text, max(1, source.tab_width or tab_width))
    lines = f"{_INDENT}{shown}\n"
    if source.column > 0:
        first = min(source.column - 1, len(text))
        last = min(source.column_end - 1, len(text) - 1)
        tildes = starts[last + 1] - starts[first] - 1 if last > first else 0
        lines += f"{_INDENT}{' ' * starts[first]}^{'~' * tildes}\n"
    return lines


def _expand(text: str, tab_width: int) -> tuple[str, list[int]]:
    """The text as it is shown, and the cell at which each character, and the end, comes."""
    shown: list[str] = []
    starts = [0]
    cell = 0
    for character in text:
        if character == "\t":
            piece = " " * (tab_width - cell % tab_width)
            cell += len(piece)
        elif printable(character) != character:
            piece = "?"
            cell += 1
        else:
            piece = character
            cell += cells(character)
        shown.append(piece)
        starts.append(cell)
    return "".join(shown), starts
