"""Wraps the text of a diagnostic to the width of a terminal.

The rules are those of the EDG front end. A line breaks at the last space that fits, which is
dropped. A word that is longer than a line is cut at the limit. The first line starts at a margin,
the others at a deeper indent.

    wrap("error: identifier \\"nosuch\\" is undefined", 0, 10, 30)
    error: identifier "nosuch" is
              undefined
"""

from __future__ import annotations

import unicodedata

from pylink.diagnostics.color import ESC, RESET


def cells(character: str) -> int:
    """Return the number of terminal columns of a character: 0, 1 or 2."""
    if " " <= character <= "~":
        return 1
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def wrap(text: str, margin: int, indent: int, width: int) -> str:
    """Return the text in lines of at most `width` columns, without a newline at the end.

    `margin` and `indent` are the starting columns of the first line and of the others. With a
    `width` of 0 the text is not wrapped. Every line has at least one character of the text, even
    if that exceeds `width`.
    """
    if width <= 0:
        return " " * margin + text
    return (
        _wrap_marked(text, margin, indent, width)
        if ESC in text
        else _wrap_plain(text, margin, indent, width)
    )


def _wrap_plain(text: str, margin: int, indent: int, width: int) -> str:
    """Wrap text without colors: search backwards from the limit for a space."""
    lines = []
    start, first_column = 0, margin
    while True:
        limit = _end_of_fit(text, start, max(1, width - first_column))
        if limit == len(text):
            lines.append(" " * first_column + text[start:])
            return "\n".join(lines)
        # The space may be just after the limit, since it is dropped.
        space = text.rfind(" ", start + 1, limit + 1)
        end = space if space > start else limit
        lines.append(" " * first_column + text[start:end])
        start = end + 1 if space > start else end
        first_column = indent


def _end_of_fit(text: str, start: int, room: int) -> int:
    """Return the end of the longest piece from `start` that fits into `room` columns.

    The piece has at least one character.
    """
    if text.isascii():
        return min(len(text), start + room)
    used = 0
    for i in range(start, len(text)):
        used += cells(text[i])
        if used > room and i > start:
            return i
    return len(text)


def _wrap_marked(text: str, margin: int, indent: int, width: int) -> str:
    """Wrap text with colors character by character, and go back to the last space.

    A color that is on at a break is switched off before the indent of the next line, then on again.
    """
    pieces: list[str] = [" " * margin]  # characters, markers of colors and line breaks
    color = space_color = RESET  # at position `i`, and at the last space of this line
    first_column, used, empty = margin, 0, True  # of this line: `used` columns are filled
    space = -1  # position in `pieces` of the last space of this line, -1 without one
    i = 0
    after_space = 0  # position in `text` after that space
    while i < len(text):
        if text[i] == ESC:
            color = text[i : i + 2]
            pieces.append(color)
            i += 2
            continue
        width_here = cells(text[i])
        if not empty and used + width_here > max(1, width - first_column):
            if text[i] == " ":
                i += 1
            elif space >= 0:
                del pieces[space:]
                i, color = after_space, space_color
            pieces.append(_line_break(color, indent))
            first_column, used, empty, space = indent, 0, True, -1
            continue
        if text[i] == " " and not empty:
            space, space_color, after_space = len(pieces), color, i + 1
        pieces.append(text[i])
        used += width_here
        empty = False
        i += 1
    return "".join(pieces)


def _line_break(color: str, indent: int) -> str:
    """Return a newline and an indent without color; `color` is on before and after."""
    if color == RESET:
        return "\n" + " " * indent
    return "\n" + RESET + " " * indent + color
