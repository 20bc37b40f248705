"""The options of all commands in a common form, for completions and manual pages."""

from __future__ import annotations

from importlib import import_module

from pylink.options.commands import COMMANDS
from pylink.options.help import HELP, describe_option, linkable_choices
from pylink.options.table import FLAG, OPTIONS, TRUTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

# Placeholders, in help texts, of arguments that name files or directories.
FILES = ("<file>", "<directory>", "<file or directory>", "FILE", "DIR", "PATH", "DIRECTORY")


class OptionHelp:
    """An option: its spellings (the long one first), placeholder of its argument, and help text.

    `argument` is empty for a switch. `choices` are the allowed values, empty if there is no fixed
    set.
    """

    __slots__ = ("about", "argument", "choices", "spellings")

    def __init__(self, spellings: list[str], argument: str, choices: list[str], about: str) -> None:
        self.spellings = spellings
        self.argument = argument
        self.choices = choices
        self.about = about

    @property
    def is_file(self) -> bool:
        """Whether the argument names a file or a directory."""
        return self.argument.removesuffix(",...") in FILES


def link_options() -> list[OptionHelp]:
    """Return the options of a link that this version has, in alphabetical order."""
    option_helps = []
    for option in sorted(OPTIONS, key=lambda option: option.long.lower()):
        if option.built:
            spellings = [f"--{option.long}", *([f"-{option.short}"] if option.short else [])]
            argument = "" if option.takes == FLAG else HELP[option.long][0] or "<value>"
            choices = ["true", "false"] if option.takes == TRUTH else linkable_choices(option)
            option_helps.append(OptionHelp(spellings, argument, choices, describe_option(option)))
    return option_helps


def command_options(name: str) -> list[OptionHelp]:
    """Return the options of a command other than `link`; empty if it has no parser."""
    parser = command_parser(name)
    if parser is None:
        return []
    option_helps = []
    for action in parser._actions:
        if not action.option_strings:
            continue
        argument = ""
        if action.nargs != 0:
            argument = str(action.metavar or (action.dest or "value").upper())
        choices = [str(choice) for choice in action.choices or ()]
        spellings = sorted(action.option_strings, key=len, reverse=True)
        text = (action.help or "") % {**vars(action), "prog": parser.prog} if action.help else ""
        option_helps.append(OptionHelp(spellings, argument, choices, text))
    return option_helps


def command_parser(name: str) -> argparse.ArgumentParser | None:
    """Return the parser of a command; None for a command without a parser."""
    module = COMMANDS[name].parser
    if not module:
        return None
    parser: argparse.ArgumentParser = import_module(module).parser()
    return parser
