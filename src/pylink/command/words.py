"""The options of all commands in one form, for completions and manual pages."""

from __future__ import annotations

from importlib import import_module

from pylink.options.commands import COMMANDS
from pylink.options.help import HELP, about, shown_choices
from pylink.options.table import FLAG, OPTIONS, TRUTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

# Arguments that are files, by the words that help has for them.
FILES = ("<file>", "<directory>", "<file or directory>", "FILE", "DIR", "PATH", "DIRECTORY")


class Word:
    """An option: its spellings, the long one first, what its argument is, and what it does.

    `argument` is empty for a switch; `choices` are the values where these are some words.
    """

    __slots__ = ("about", "argument", "choices", "spellings")

    def __init__(self, spellings: list[str], argument: str, choices: list[str], about: str) -> None:
        self.spellings = spellings
        self.argument = argument
        self.choices = choices
        self.about = about

    @property
    def is_file(self) -> bool:
        """Whether the argument names a file."""
        return self.argument.removesuffix(",...") in FILES


def link_words() -> list[Word]:
    """The options of a link, in alphabetical order."""
    word_rows = []
    for option in sorted(OPTIONS, key=lambda word: word.long.lower()):
        if option.built:
            spellings = [f"--{option.long}", *([f"-{option.short}"] if option.short else [])]
            argument = "" if option.takes == FLAG else HELP[option.long][0] or "<value>"
            choices = ["true", "false"] if option.takes == TRUTH else shown_choices(option)
            word_rows.append(Word(spellings, argument, choices, about(option)))
    return word_rows


def command_words(name: str) -> list[Word]:
    """The options of another command; none of one without a parser."""
    parser = command_parser(name)
    if parser is None:
        return []
    word_rows = []
    for action in parser._actions:
        if not action.option_strings:
            continue
        argument = ""
        if action.nargs != 0:
            argument = str(action.metavar or (action.dest or "value").upper())
        choices = [str(choice) for choice in action.choices or ()]
        spellings = sorted(action.option_strings, key=len, reverse=True)
        text = (action.help or "") % {**vars(action), "prog": parser.prog} if action.help else ""
        word_rows.append(Word(spellings, argument, choices, text))
    return word_rows


def command_parser(name: str) -> argparse.ArgumentParser | None:
    """The parser of a command, None for a command that has none."""
    module = COMMANDS[name].parser
    if not module:
        return None
    parser: argparse.ArgumentParser = import_module(module).parser()
    return parser
