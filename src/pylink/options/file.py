"""Quotes and escapes: splits options files into arguments, and list arguments into items."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink

BLANKS = " \t\r\n"


def split_arguments(text: str, sink: Sink) -> list[str]:
    """Split the text of an options file into arguments.

    Blanks separate arguments except between double quotes. A backslash is removed, and the next
    character does not separate or quote. Double quotes are removed, even escaped ones, except
    directly after an escaped backslash. Single quotes and `#` are ordinary characters. A NUL
    ends the text. An unmatched quote or a backslash at the end is a fatal diagnostic.
    """
    text = text.partition("\0")[0]
    if '"' not in text and "\\" not in text:
        # The usual case of response files: hundreds of times faster than the loop below.
        for blank in BLANKS:
            text = text.replace(blank, " ")
        return [part for part in text.split(" ") if part]
    arguments: list[str] = []
    current: list[str] | None = None
    in_quotes = False
    characters = iter(text)
    for character in characters:
        if character in BLANKS and not in_quotes:
            if current is not None:
                arguments.append(unquote("".join(current)))
                current = None
            continue
        if current is None:
            current = []
        if character == "\\":
            escaped = next(characters, "")
            if not escaped:
                sink.fatal("stray-character", value="")
            current.append(escaped)
            continue
        if character == '"':
            in_quotes = not in_quotes
        current.append(character)
    if in_quotes:
        sink.fatal("stray-character", value='"')
    if current is not None:
        arguments.append(unquote("".join(current)))
    return arguments


def split_items(text: str, sink: Sink) -> list[str]:
    """Split a list argument into items: commas separate them except between double quotes.

    Spaces and tabs around an item are stripped, even in quotes, and empty items are dropped. Double
    quotes are removed, except directly after a backslash, which is otherwise an ordinary character.
    """
    items: list[str] = []
    start = 0
    in_quotes = False
    for position, character in enumerate(text):
        if character == '"':
            in_quotes = not in_quotes
        elif character == "," and not in_quotes:
            items.append(text[start:position])
            start = position + 1
    if in_quotes:
        sink.fatal("stray-character", value='"')
    items.append(text[start:])
    stripped = [unquote(item).strip(" \t") for item in items]
    return [item for item in stripped if item]


def unquote(text: str) -> str:
    """Return the text without double quotes, except for quotes directly after a backslash."""
    if '"' not in text:
        return text
    lines = [
        character
        for position, character in enumerate(text)
        if character != '"' or (position and text[position - 1] == "\\")
    ]
    return "".join(lines)
