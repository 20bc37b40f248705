"""Quotes and escapes: the words of an options file, the items of a list argument."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink

BLANKS = " \t\r\n"


def split_words(text: str, sink: Sink) -> list[str]:
    """The arguments that the text of an options file stands for.

    Blanks separate words except between double quotes. A backslash stands for the character after
    it and takes no effect away from a quote: that only an escaped backslash before it does. Single
    quotes and `#` mean nothing. A NUL ends the text.
    """
    text = text.partition("\0")[0]
    if '"' not in text and "\\" not in text:
        # Response files of long command lines: hundreds of times as fast as what follows.
        for blank in BLANKS:
            text = text.replace(blank, " ")
        return [word for word in text.split(" ") if word]
    words: list[str] = []
    word: list[str] | None = None
    quoted = False
    characters = iter(text)
    for character in characters:
        if character in BLANKS and not quoted:
            if word is not None:
                words.append(unquote("".join(word)))
                word = None
            continue
        if word is None:
            word = []
        if character == "\\":
            escaped = next(characters, "")
            if not escaped:
                sink.fatal("stray-character", value="")
            word.append(escaped)
            continue
        if character == '"':
            quoted = not quoted
        word.append(character)
    if quoted:
        sink.fatal("stray-character", value='"')
    if word is not None:
        words.append(unquote("".join(word)))
    return words


def split_items(text: str, sink: Sink) -> list[str]:
    """The items of a list argument: commas separate them except between double quotes.

    Spaces and tabs around an item, quoted or not, and empty items disappear; a backslash is an
    ordinary character.
    """
    items: list[str] = []
    start = 0
    quoted = False
    for position, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif character == "," and not quoted:
            items.append(text[start:position])
            start = position + 1
    if quoted:
        sink.fatal("stray-character", value='"')
    items.append(text[start:])
    stripped = [unquote(item).strip(" \t") for item in items]
    return [item for item in stripped if item]


def unquote(text: str) -> str:
    """The text without its double quotes; one after a backslash stays."""
    if '"' not in text:
        return text
    lines = [
        character
        for position, character in enumerate(text)
        if character != '"' or (position and text[position - 1] == "\\")
    ]
    return "".join(lines)
