"""The source line of a diagnostic with a caret and tildes below the place."""

from __future__ import annotations

from pylink.diagnostics.stream import printable
from pylink.diagnostics.wrap import cells

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics.record import Source

_INDENT = "  "


def snippet(text: str, source: Source, tab_width: int = 8) -> str:
    """Return the line `text` of a place and a line with a caret below it, each with its newline.

    Columns of the place count code points; the caret line counts terminal cells. Tabs are expanded
    to multiples of the place's tab width, or of `tab_width` if it has none. A place without a
    column has no caret line.
    """
    expanded, columns = _expand(text, max(1, source.tab_width or tab_width))
    lines = f"{_INDENT}{expanded}\n"
    if source.column > 0:
        first = min(source.column - 1, len(text))
        last = min(source.column_end - 1, len(text) - 1)
        tildes = columns[last + 1] - columns[first] - 1 if last > first else 0
        lines += f"{_INDENT}{' ' * columns[first]}^{'~' * tildes}\n"
    return lines


def _expand(text: str, tab_width: int) -> tuple[str, list[int]]:
    """Return the text as the terminal shows it, and the column where each character begins.

    Tabs become blanks, and characters that must not reach a terminal become `?`. Columns are
    terminal cells, counted from 0; the last one is the end of the text.
    """
    pieces: list[str] = []
    columns = [0]
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
        pieces.append(piece)
        columns.append(cell)
    return "".join(pieces), columns
