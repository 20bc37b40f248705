"""Arguments of `-Xopt`: LLVM's spelling of the remark options, and switches for traces."""

from __future__ import annotations

from pylink.options.parse import parse_number
from pylink.options.table import BY_ATTRIBUTE, FLAG, NUMBER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.diagnostics import Sink
    from pylink.options.table import Value

# The start of the names of remark options.
PREFIX = "pass-remarks"

# Traces in plain text, which the user switches on by these names (see pylink.remarks.profuse).
PROFUSE_CHANNELS = ("profusededup", "profusetwins")

# LLVM's spellings of true and false.
TRUTH_VALUES = dict.fromkeys(("true", "TRUE", "True", "1"), True) | dict.fromkeys(
    ("false", "FALSE", "False", "0"), False
)


def read_xopt(arguments: Iterable[str], values: dict[str, Value], sink: Sink) -> dict[str, bool]:
    """Add the remark options to `values`, by attribute; return which traces are on or off, by name.

    An option has one dash or two. Its value follows an equals sign or is the next argument. A
    switch needs no value. If an option is repeated, the last value counts. An error is a fatal
    diagnostic.
    """
    profuse: dict[str, bool] = {}
    remaining = iter(arguments)
    for argument in remaining:
        name, equals, text = argument.removeprefix("-").removeprefix("-").partition("=")
        option = BY_ATTRIBUTE.get(name.replace("-", "_")) if name.startswith(PREFIX) else None
        if not argument.startswith("-") or not (option or name in PROFUSE_CHANNELS):
            sink.fatal("unknown-option", option=f"-Xopt {argument}")
        if option is None or option.takes == FLAG:
            is_on = TRUTH_VALUES.get(text if equals else "true")
            if is_on is None:
                sink.fatal("boolean-expected", value=text)
            if option is None:
                profuse[name] = is_on
            else:
                values[option.attribute] = is_on
            continue
        if not equals:
            following = next(remaining, None)
            if following is None:
                sink.fatal("argument-expected", option=f"-Xopt {argument}")
            text = following
        value: Value = parse_number(text, sink) if option.takes == NUMBER else text
        if option.choices and value not in option.choices:
            sink.fatal("undefined-value", value=text, option=option.long)
        values[option.attribute] = value
    return profuse
