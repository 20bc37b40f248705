"""From argv to option values, with nvlink's rules and its words for each mistake.

Arguments are read from left to right and the first mistake ends the parse. What options mean
together is checked afterwards, in `pylink.options.check`.
"""

from __future__ import annotations

import os

from pylink.diagnostics import Sink
from pylink.diagnostics.errors import LinkError
from pylink.options.file import split_items, split_words
from pylink.options.table import FLAG, JOINED, LIST, NUMBER, SIZE, SPELLINGS, TRUTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.options.table import Option, Value

    Identity = tuple[int, int]  # device and inode

# Options files open inside one another, which nvlink allows 15 of, and in all: files that name each
# other twice would soon be more than anyone can read.
MAX_DEPTH = 200
MAX_FILES = 1 << 14
MAX_SIZE = 1 << 28  # bytes of one

# Holds options, for builds whose command line cannot be changed.
VARIABLE = "PYLINK_OPTIONS"


class CommandLine:
    """What argv said: `values` by attribute, only of options that were given, and the inputs.

    `whole` has, for each input, whether all members of an archive there are asked for, and
    `whole_libraries` the same for each item of -l. `files` are the options files in the order in
    which they were opened, and `lists` grows what becomes the value of a list option when all is
    read. `spelled` is how options were named that not all releases have.
    """

    __slots__ = (
        "files",
        "inputs",
        "lists",
        "spelled",
        "values",
        "whole",
        "whole_archive",
        "whole_libraries",
    )

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        self.spelled: dict[str, str] = {}
        self.lists: dict[str, list[str]] = {}
        self.inputs: list[str] = []
        self.whole: list[bool] = []
        self.whole_libraries: list[bool] = []
        self.whole_archive = False  # for what comes next
        self.files: list[str] = []


def parse(
    argv: Sequence[str], sink: Sink, line: CommandLine | None = None, environment: str = ""
) -> CommandLine:
    """Read all arguments; a mistake is a fatal diagnostic.

    `line` is what they are added to, so that a caller still has it after a mistake. `environment`
    is the text of the options that stand before them in the variable.
    """
    line = line or CommandLine()
    if environment:
        try:
            _parse_words(split_words(environment, sink), line, sink, ())
        except LinkError:
            _name_origin(sink, f"the environment variable {VARIABLE}")
            raise
    _parse_words(argv, line, sink, ())
    _settle(line)
    return line


def parse_leniently(argv: Sequence[str], environment: str) -> CommandLine:
    """What the arguments say. Wrong ones are ignored; they are reported elsewhere.

    For the options that say how to report a mistake: they may stand after it.
    """
    line, unheard = CommandLine(), Sink()
    words_of_both = [*split_leniently(environment), *argv]
    _parse_words(words_of_both, line, unheard, (), lenient=True)
    _settle(line)
    return line


def split_leniently(text: str) -> list[str]:
    """The words of a text; none if quotes do not match."""
    try:
        return split_words(text, Sink())
    except LinkError:
        return []


def _settle(line: CommandLine) -> None:
    for attribute, items in line.lists.items():
        line.values[attribute] = tuple(items)


def _name_origin(sink: Sink, origin: str) -> None:
    """Say with the last diagnostic, a mistake, which text it is in."""
    from pylink.diagnostics.record import note

    mistake = sink.diagnostics[-1]
    mistake.extra.append(note("in-options-file", origin=origin))


def _parse_words(
    argv: Sequence[str],
    line: CommandLine,
    sink: Sink,
    around: tuple[Identity, ...],
    *,
    lenient: bool = False,
) -> None:
    """Read these words; `around` tells the options files that they are in apart."""
    position = 0
    while position < len(argv):
        try:
            position = read_word(argv, position, line, sink, around, lenient=lenient)
        except LinkError:
            if not lenient:
                raise
            position += 1


def read_word(
    argv: Sequence[str],
    position: int,
    line: CommandLine,
    sink: Sink,
    around: tuple[Identity, ...],
    *,
    lenient: bool,
) -> int:
    """Read the word at a position, with its argument if that is apart; where the next one is."""
    word = argv[position]
    position += 1
    if not word.startswith("-") or word == "-":
        # nvlink takes a file whose name begins so for an input, and knows no response files.
        if word[:1] == "@" and not os.path.lexists(word) and os.path.exists(word[1:]):
            _parse_file(word[1:], line, sink, around, lenient=lenient)
            return position
        line.inputs.append(word)
        line.whole.append(line.whole_archive)
        return position
    option, spelling, argument = _recognize(word, sink)
    if option.takes == FLAG:
        if argument is not None:
            sink.fatal("no-argument-expected", option=spelling)
        if option.attribute in ("whole_archive", "no_whole_archive"):
            line.whole_archive = option.attribute == "whole_archive"
        else:
            line.values[option.attribute] = True
        if option.since:
            line.spelled[option.attribute] = spelling
        return position
    if argument is None:
        at_end = position == len(argv)
        if option.implied is not None and (at_end or argv[position].startswith("-")):
            argument = option.implied
        elif at_end:
            sink.fatal("argument-expected", option=spelling)
        else:
            argument = argv[position]
            position += 1
    _store(option, argument, line, sink)
    if option.attribute == "options_file":
        for file in split_items(argument, sink):
            _parse_file(file, line, sink, around, lenient=lenient)
    return position


def _parse_file(
    file: str,
    line: CommandLine,
    sink: Sink,
    around: tuple[Identity, ...],
    *,
    lenient: bool,
) -> None:
    """Read the words of an options file as if they stood in its place."""
    line.files.append(file)
    if len(around) == MAX_DEPTH or len(line.files) > MAX_FILES:
        sink.fatal("too-many-options-files", file=file)
    from pylink.diagnostics.errors import reason_of  # most links have no such file
    from pylink.files.reading import RefusedError, read_incoming

    try:
        status = os.stat(file)
        here = status.st_dev, status.st_ino
        if here in around:
            sink.fatal("too-many-options-files", file=file)
        text = read_incoming(file, limit=MAX_SIZE)
    except IsADirectoryError:
        return
    except RefusedError as error:
        sink.fatal("cannot-read-file", file=file, reason=reason_of(error))
    except (OSError, ValueError):
        sink.fatal("cannot-open-options-file", file=file)
    try:
        argv = split_words(os.fsdecode(text), sink)
        _parse_words(argv, line, sink, (*around, here), lenient=lenient)
    except LinkError:
        _name_origin(sink, f"options file '{file}'")
        raise


def _recognize(word: str, sink: Sink) -> tuple[Option, str, str | None]:
    """The option a word names, how it was spelled, and the argument inside the word."""
    option = SPELLINGS.get(word)
    if option is not None:
        return option, word, None
    spelling, equals, argument = word.partition("=")
    option = SPELLINGS.get(spelling)
    if option is not None and equals:
        return option, spelling, argument
    option = JOINED.get(word[1])
    if option is not None:
        return option, word[:2], word[2:]
    from pylink.options.suggestions import suggest_option

    sink.fatal("unknown-option", option=spelling[1:], explain=suggest_option)


def _store(option: Option, argument: str, line: CommandLine, sink: Sink) -> None:
    value: Value
    if option.takes == LIST:
        items = split_items(argument, sink)
        line.lists.setdefault(option.attribute, []).extend(items)
        if option.attribute == "library":
            line.whole_libraries += [line.whole_archive] * len(items)
        return
    if option.takes == NUMBER:
        value = parse_number(argument, sink)
    elif option.takes == SIZE:
        value = _integer(argument, sink)
    elif option.takes == TRUTH:
        if argument not in ("true", "false"):
            sink.fatal("boolean-expected", value=argument)
        value = argument == "true"
    else:
        value = argument
    if option.choices and value not in option.choices:
        from pylink.options.suggestions import suggest_value

        sink.fatal("undefined-value", value=argument, option=option.long, explain=suggest_value)
    if line.values.get(option.attribute, value) != value:
        sink.report("option-redefined", option=option.long)
    line.values[option.attribute] = value


def parse_number(text: str, sink: Sink) -> int:
    """A number as `_integer` reads it, of 32 bits."""
    number = _integer(text, sink)
    if not -(1 << 31) <= number < 1 << 31:
        sink.fatal("integer-range", value=text)
    return number


def _integer(text: str, sink: Sink) -> int:
    """A number in C notation: decimal, 0x or 0 for octal; an empty text is 0."""
    digits = text.lstrip(" \t\n\v\f\r")
    negative = digits.startswith("-")
    if digits[:1] in ("-", "+"):
        digits = digits[1:]
    base = 10
    if digits[:2] in ("0x", "0X"):
        base, digits = 16, digits[2:]
    elif digits.startswith("0"):
        base = 8
    try:
        # int() takes underscores, blanks and a second sign, C does not.
        if not (digits.isascii() and digits.isalnum()):
            raise ValueError(text)
        number = int(digits, base)
    except ValueError:
        if text:
            sink.fatal("number-expected", value=text)
        number = 0
    return -number if negative else number
