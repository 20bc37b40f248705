"""Converts keyword arguments to option values, and checks their names and types."""

from __future__ import annotations

import os

from pylink.options.table import BY_ATTRIBUTE, FLAG, LIST, NUMBER, OPTIONS, SIZE, TRUTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from pylink.diagnostics import Sink
    from pylink.options.table import Option, Value

# Value of the option `profile` for True: the profile is created but not written to a file.
NO_FILE = ""

# Other names of options, which are in common use.
ALIASES = {"lto": "link_time_opt"}

# Parameters of `link` that are not options, for suggestions.
_OTHER_ARGUMENTS = ("arch", "cancel", "log", "options", "output", "progress")


def check_list(inputs: object) -> None:
    """Raise TypeError if `inputs` is a path or bytes: a single input, not a list of inputs."""
    if isinstance(inputs, (str, bytes, os.PathLike)):
        raise TypeError("inputs is a list, also of one input")


def check_keywords(keywords: Mapping[str, object]) -> dict[str, Value]:
    """Convert keyword arguments to option values; TypeError for a wrong name or type.

    The values are by attribute of the option. A keyword whose value is None counts as not given.
    """
    values: dict[str, Value] = {}
    for name, value in keywords.items():
        option = BY_ATTRIBUTE.get(ALIASES.get(name, name))
        if option is None or not option.in_call:
            raise TypeError(_unknown_option_message(name))
        if value is not None:
            values[option.attribute] = _convert_value(option, name, value)
    return values


def without_defaults(values: Mapping[str, Value]) -> dict[str, Value]:
    """Return the values that are not defaults; see `_is_default`."""
    return {name: value for name, value in values.items() if not _is_default(name, value)}


def check_choices(values: Mapping[str, Value], sink: Sink) -> None:
    """Report values that an option does not accept, with a fatal diagnostic."""
    for option in OPTIONS:
        if option.choices and option.attribute in values:
            value = values[option.attribute]
            if value not in option.choices:
                from pylink.options.suggestions import suggest_value

                sink.fatal(
                    "undefined-value", value=str(value), option=option.long, explain=suggest_value
                )


def _is_default(name: str, value: Value) -> bool:
    """Return whether the value is the default of the option with the attribute `name`.

    Defaults are an empty list, and False. Options that take true or false have no default.
    """
    return value == () or (value is False and BY_ATTRIBUTE[name].takes != TRUTH)


def _unknown_option_message(name: str) -> str:
    """Return the message for an unknown option, with the closest name as a hint."""
    from difflib import get_close_matches

    names = [option.attribute for option in OPTIONS if option.in_call and option.built]
    close = get_close_matches(name, [*names, *ALIASES, *_OTHER_ARGUMENTS], 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"unknown option {name!r}{hint}"


def _convert_value(option: Option, name: str, value: object) -> Value:
    """Convert the value of the keyword `name` for its option; TypeError for a wrong type."""
    if option.takes in (FLAG, TRUTH):
        if isinstance(value, bool):
            return value
    elif option.takes in (NUMBER, SIZE):
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    elif option.takes == LIST:
        items = _convert_list(value)
        if items is not None:
            return items
    elif isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    elif option.attribute == "profile" and isinstance(value, bool):
        return NO_FILE if value else False
    raise TypeError(f"option {name!r} does not take {value!r}")


def _convert_list(value: object) -> tuple[str, ...] | None:
    """Return the items of a list, each a text or a path; None if it is not such a list.

    A text or path alone is a list of one item.
    """
    if isinstance(value, (str, os.PathLike)):
        return (os.fspath(value),)
    try:
        items = [
            os.fspath(item) if isinstance(item, (str, os.PathLike)) else None
            for item in value  # type: ignore[attr-defined]  # not iterable: not a list
        ]
    except TypeError:
        return None
    return None if None in items else tuple(item for item in items if item is not None)


class OptionValues:
    """Read-only values of options by attribute; the base of LinkOptions.

    An option that was not given has its default: False, an empty tuple, or None if the linker
    decides.
    """

    __slots__ = ("_values",)

    _values: dict[str, Value]

    def _set_options(self, keywords: Mapping[str, object]) -> None:
        """Check the keywords, and keep their values as the options of this object."""
        ordered = {name: keywords[name] for name in sorted(keywords, key=str.lower)}
        object.__setattr__(self, "_values", check_keywords(ordered))

    @property
    def given(self) -> Mapping[str, Value]:
        """The values of the options that were given, by attribute, such as `link_time_opt`."""
        return dict(self._values)

    # The properties of LinkOptions call these methods, one for each type of value.

    def _flag(self, name: str) -> bool:
        """Return the value of an option without an argument; False if it was not given."""
        return bool(self._values.get(name))

    def _truth(self, name: str) -> bool | None:
        """Return the value of an option that can be on or off; None if it was not given."""
        value = self._values.get(name)
        return value if isinstance(value, bool) else None

    def _number(self, name: str) -> int | None:
        """Return the value of an option if it is a number, else None."""
        value = self._values.get(name)
        return value if isinstance(value, int) else None

    def _text(self, name: str) -> str | None:
        """Return the value of an option if it is a text, else None."""
        value = self._values.get(name)
        return value if isinstance(value, str) else None

    def _list(self, name: str) -> tuple[str, ...]:
        """Return the value of an option if it is a tuple, else an empty one."""
        value = self._values.get(name)
        return value if isinstance(value, tuple) else ()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"options are frozen: use replace({name}=...)")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OptionValues):
            return NotImplemented
        return without_defaults(self._values) == without_defaults(other._values)

    def __hash__(self) -> int:
        return hash(frozenset(without_defaults(self._values).items()))

    def __repr__(self) -> str:
        text = ", ".join(f"{name}={value!r}" for name, value in self._values.items())
        return f"{type(self).__name__}({text})"

    def __getstate__(self) -> tuple[None, dict[str, object]]:
        return None, {"_values": self._values}

    def __setstate__(self, state: tuple[None, dict[str, object]]) -> None:
        object.__setattr__(self, "_values", state[1]["_values"])
