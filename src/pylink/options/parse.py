"""Turns argv into option values, by nvlink's rules and with its error messages.

Arguments are read from left to right and the first error ends the parse. Combinations of options
are checked afterwards, in `pylink.options.check`.
"""

from __future__ import annotations

import os

from pylink.diagnostics import Sink
from pylink.diagnostics.errors import LinkError
from pylink.options.file import split_arguments, split_items
from pylink.options.table import FLAG, JOINABLE, LIST, NUMBER, SIZE, SPELLINGS, TRUTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.options.table import Option, Value

    Identity = tuple[int, int]  # device and inode

# Greatest depth of options files in options files (nvlink allows 15), and greatest number of files
# that are opened in total: of N files that each name the next one twice, 2**N would be opened.
MAX_DEPTH = 200
MAX_FILES = 1 << 14
MAX_SIZE = 1 << 28  # bytes of one file

# Environment variable with options, for builds whose command line cannot be changed.
OPTIONS_VARIABLE = "PYLINK_OPTIONS"


class CommandLine:
    """The parsed arguments: `values` by attribute, only of options that were given, and inputs.

    An attribute is the long name of an option with underscores. `whole_inputs` and
    `whole_libraries` say for each input, and each value of -l, whether all members of an archive
    are linked. `files` are the options files, also those of @FILE, in the order of opening. `lists`
    collects values of list options until all arguments are read. `spellings` says, by attribute,
    how the user spelled options that not all releases have.
    """

    __slots__ = (
        "files", "inputs", "lists", "spellings", "values", "whole_archive", "whole_inputs",
        "whole_libraries",
    )  # fmt: skip

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        self.spellings: dict[str, str] = {}
        self.lists: dict[str, list[str]] = {}
        self.inputs: list[str] = []
        self.whole_inputs: list[bool] = []
        self.whole_libraries: list[bool] = []
        self.whole_archive = False  # for the inputs and libraries that follow
        self.files: list[str] = []


def parse(
    argv: Sequence[str], sink: Sink, line: CommandLine | None = None, environment: str = ""
) -> CommandLine:
    """Read all arguments; an error is a fatal diagnostic.

    They are added to `line`, so that a caller has those before an error even then. `environment`
    is the value of PYLINK_OPTIONS, whose options come before those of `argv`.
    """
    line = line or CommandLine()
    if environment:
        try:
            _parse_arguments(split_arguments(environment, sink), line, sink, ())
        except LinkError:
            _name_origin(sink, f"the environment variable {OPTIONS_VARIABLE}")
            raise
    _parse_arguments(argv, line, sink, ())
    _finish_lists(line)
    return line


def parse_leniently(argv: Sequence[str], environment: str) -> CommandLine:
    """Read all arguments, ignoring wrong ones, which are reported elsewhere.

    Used for options that control how errors are reported: they may come after an error.
    """
    line, silent_sink = CommandLine(), Sink()
    arguments = [*_split_leniently(environment), *argv]
    _parse_arguments(arguments, line, silent_sink, (), lenient=True)
    _finish_lists(line)
    return line


def _split_leniently(text: str) -> list[str]:
    """Return the arguments in a text; empty if it cannot be split, as with an unmatched quote."""
    try:
        return split_arguments(text, Sink())
    except LinkError:
        return []


def _finish_lists(line: CommandLine) -> None:
    """Copy the collected values of list options to `values`."""
    for attribute, items in line.lists.items():
        line.values[attribute] = tuple(items)


def _name_origin(sink: Sink, origin: str) -> None:
    """Add to the last diagnostic, which is an error, a note that the option is from `origin`."""
    from pylink.diagnostics.record import note

    diagnostic = sink.diagnostics[-1]
    diagnostic.extra.append(note("in-options-file", origin=origin))


def _parse_arguments(
    argv: Sequence[str],
    line: CommandLine,
    sink: Sink,
    outer_files: tuple[Identity, ...],
    *,
    lenient: bool = False,
) -> None:
    """Read the arguments `argv`; `outer_files` are the options files that contain them.

    With `lenient`, wrong arguments are ignored.
    """
    position = 0
    while position < len(argv):
        try:
            position = read_argument(argv, position, line, sink, outer_files, lenient=lenient)
        except LinkError:
            if not lenient:
                raise
            position += 1


def read_argument(
    argv: Sequence[str],
    position: int,
    line: CommandLine,
    sink: Sink,
    outer_files: tuple[Identity, ...],
    *,
    lenient: bool,
) -> int:
    """Read the argument at `position`, and its value if that is the next argument.

    Returns the position of the next argument to read. For @FILE and --options-file, the arguments
    in the files are read, too. `outer_files` and `lenient` are those of `_parse_arguments`.
    """
    argument_text = argv[position]
    position += 1
    if not argument_text.startswith("-") or argument_text == "-":
        # nvlink has no response files, and takes an existing file of this name for an input.
        if (
            argument_text[:1] == "@"
            and not os.path.lexists(argument_text)
            and os.path.exists(argument_text[1:])
        ):
            _parse_file(argument_text[1:], line, sink, outer_files, lenient=lenient)
            return position
        line.inputs.append(argument_text)
        line.whole_inputs.append(line.whole_archive)
        return position
    option, spelling, value = _recognize(argument_text, sink)
    if option.takes == FLAG:
        if value is not None:
            sink.fatal("no-argument-expected", option=spelling)
        if option.attribute in ("whole_archive", "no_whole_archive"):
            line.whole_archive = option.attribute == "whole_archive"
        else:
            line.values[option.attribute] = True
        if option.since:
            line.spellings[option.attribute] = spelling
        return position
    if value is None:
        at_end = position == len(argv)
        if option.implied is not None and (at_end or argv[position].startswith("-")):
            value = option.implied
        elif at_end:
            sink.fatal("argument-expected", option=spelling)
        else:
            value = argv[position]
            position += 1
    _store(option, value, line, sink)
    if option.attribute == "options_file":
        for file in split_items(value, sink):
            _parse_file(file, line, sink, outer_files, lenient=lenient)
    return position


def _parse_file(
    file: str, line: CommandLine, sink: Sink, outer_files: tuple[Identity, ...], *, lenient: bool
) -> None:
    """Read the arguments of an options file as if they replaced the argument that names it."""
    line.files.append(file)
    if len(outer_files) == MAX_DEPTH or len(line.files) > MAX_FILES:
        sink.fatal("too-many-options-files", file=file)
    from pylink.diagnostics.errors import reason_of  # most links have no such file
    from pylink.files.reading import RefusedError, read_incoming

    try:
        status = os.stat(file)
        file_id = status.st_dev, status.st_ino
        if file_id in outer_files:
            sink.fatal("too-many-options-files", file=file)
        text = read_incoming(file, limit=MAX_SIZE)
    except IsADirectoryError:
        return
    except RefusedError as error:
        sink.fatal("cannot-read-file", file=file, reason=reason_of(error))
    except (OSError, ValueError):
        sink.fatal("cannot-open-options-file", file=file)
    try:
        argv = split_arguments(os.fsdecode(text), sink)
        _parse_arguments(argv, line, sink, (*outer_files, file_id), lenient=lenient)
    except LinkError:
        _name_origin(sink, f"options file '{file}'")
        raise


def _recognize(argument_text: str, sink: Sink) -> tuple[Option, str, str | None]:
    """Return the option that an argument names, its spelling, and its value.

    The value is the one in the argument, as in `-arch=sm_90` and `-lfoo`, else None.
    """
    option = SPELLINGS.get(argument_text)
    if option is not None:
        return option, argument_text, None
    spelling, equals, value = argument_text.partition("=")
    option = SPELLINGS.get(spelling)
    if option is not None and equals:
        return option, spelling, value
    option = JOINABLE.get(argument_text[1])
    if option is not None:
        return option, argument_text[:2], argument_text[2:]
    from pylink.options.suggestions import suggest_option

    sink.fatal("unknown-option", option=spelling[1:], explain=suggest_option)


def _store(option: Option, text: str, line: CommandLine, sink: Sink) -> None:
    """Convert the argument of an option, and add it to `line`; a fatal diagnostic if invalid."""
    value: Value
    if option.takes == LIST:
        items = split_items(text, sink)
        line.lists.setdefault(option.attribute, []).extend(items)
        if option.attribute == "library":
            line.whole_libraries += [line.whole_archive] * len(items)
        return
    if option.takes == NUMBER:
        value = parse_number(text, sink)
    elif option.takes == SIZE:
        value = _parse_integer(text, sink)
    elif option.takes == TRUTH:
        if text not in ("true", "false"):
            sink.fatal("boolean-expected", value=text)
        value = text == "true"
    else:
        value = text
    if option.choices and value not in option.choices:
        from pylink.options.suggestions import suggest_value

        sink.fatal("undefined-value", value=text, option=option.long, explain=suggest_value)
    if line.values.get(option.attribute, value) != value:
        sink.report("option-redefined", option=option.long)
    line.values[option.attribute] = value


def parse_number(text: str, sink: Sink) -> int:
    """Parse a signed 32-bit number like `_parse_integer`; a fatal diagnostic if out of range."""
    number = _parse_integer(text, sink)
    if not -(1 << 31) <= number < 1 << 31:
        sink.fatal("integer-range", value=text)
    return number


def _parse_integer(text: str, sink: Sink) -> int:
    """Parse a number in C notation: decimal, octal after 0, hexadecimal after 0x; empty is 0."""
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
        # int() accepts underscores, blanks, a second sign and a second prefix, C does not.
        if not set(digits) <= set("0123456789abcdefABCDEF"):
            raise ValueError(text)
        number = int(digits, base)
    except ValueError:
        if text:
            sink.fatal("number-expected", value=text)
        number = 0
    return -number if negative else number
