"""The words that `-Xopt` hands on: LLVM's spelling of the remark options, and profuse channels."""

from __future__ import annotations

from pylink.options.parse import parse_number
from pylink.options.table import BY_ATTRIBUTE, FLAG, NUMBER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.diagnostics import Sink
    from pylink.options.table import Value

PREFIX = "pass-remarks"

# Channels of unstructured text, see pylink.remarks.profuse.
PROFUSE = ("profusededup", "profusetwins")

# How LLVM spells truth on a command line.
TRUTHS = dict.fromkeys(("true", "TRUE", "True", "1"), True) | dict.fromkeys(
    ("false", "FALSE", "False", "0"), False
)


def read_words(pieces: Iterable[str], values: dict[str, Value], sink: Sink) -> dict[str, bool]:
    """Add the remark options among `words` to `values`; what they say of the profuse channels.

    An option has one dash or two; its value follows an equals sign or is the next word, and a
    switch may do without. The last of several counts. A mistake is a fatal diagnostic.
    """
    profuse: dict[str, bool] = {}
    rest = iter(pieces)
    for word in rest:
        name, equals, text = word.removeprefix("-").removeprefix("-").partition("=")
        option = BY_ATTRIBUTE.get(name.replace("-", "_")) if name.startswith(PREFIX) else None
        if not word.startswith("-") or not (option or name in PROFUSE):
            sink.fatal("unknown-option", option=f"-Xopt {word}")
        if option is None or option.takes == FLAG:
            truth = TRUTHS.get(text if equals else "true")
            if truth is None:
                sink.fatal("boolean-expected", value=text)
            if option is None:
                profuse[name] = truth
            else:
                values[option.attribute] = truth
            continue
        if not equals:
            following = next(rest, None)
            if following is None:
                sink.fatal("argument-expected", option=f"-Xopt {word}")
            text = following
        value: Value = parse_number(text, sink) if option.takes == NUMBER else text
        if option.choices and value not in option.choices:
            sink.fatal("undefined-value", value=text, option=option.long)
        values[option.attribute] = value
    return profuse
