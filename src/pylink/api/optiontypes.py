"""Types, units and help of the options of a call, as text for what is generated from them."""

from __future__ import annotations

from pylink.options.help import HELP
from pylink.options.table import FLAG, LIST, NUMBER, OPTIONS, SIZE, TRUTH, Option

# Placeholders in help of arguments that are paths.
PATHS = ("<file>", "<directory>", "<file or directory>")


def call_options() -> list[Option]:
    """Return the options that a call accepts, in alphabetical order."""
    options = [option for option in OPTIONS if option.in_call and option.built]
    return sorted(options, key=lambda option: option.attribute.lower())


def _placeholder_of(option: Option) -> str:
    """Return the placeholder of an option's argument in its help; for a list that of one item."""
    return HELP[option.long][0].removesuffix(",...")


def unit_of(option: Option) -> str:
    """Return the unit of an option's value if it is a number, or the meaning if it is a text.

    It is empty for a switch, and for an option with fixed choices that are not numbers.
    """
    if option.takes in (FLAG, TRUTH) or (option.choices and option.takes != NUMBER):
        return ""
    return _placeholder_of(option).strip("<>")


def keyword_type(option: Option) -> str:
    """Return the type of an option's keyword, as source text."""
    if option.attribute == "profile":
        return "bool | Path"
    if option.takes in (FLAG, TRUTH):
        return "bool"
    if option.choices:
        return f"Literal[{', '.join(map(_literal, option.choices))}]"
    if option.takes in (NUMBER, SIZE):
        return "int"
    text = "Path" if _placeholder_of(option) in PATHS else "str"
    return f"{text} | Iterable[{text}]" if option.takes == LIST else text


def attribute_type(option: Option) -> tuple[str, str]:
    """Return the type of an option's attribute, and the method of OptionValues that returns it."""
    if option.takes == FLAG:
        return "bool", "_flag"
    if option.takes == TRUTH:
        return "bool | None", "_truth"
    if option.takes in (NUMBER, SIZE):
        return "int | None", "_number"
    return ("tuple[str, ...]", "_list") if option.takes == LIST else ("str | None", "_text")


def help_of(option: Option) -> str:
    """Return the help of an option; that of a number or size ends with its unit."""
    text = HELP[option.long][1]
    if option.takes in (NUMBER, SIZE) and unit_of(option):
        text = f"{text} Unit: {unit_of(option)}."
    return text


def _literal(value: str | int) -> str:
    """Return one of the choices of an option as Python source."""
    return f'"{value}"' if isinstance(value, str) else str(value)
