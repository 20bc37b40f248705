"""Where in a source line a symbol stands: ptxas writes no columns into its line tables."""

from __future__ import annotations

import re

from pylink.demangle import demangle
from pylink.diagnostics.snippet import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics.record import Source

# The last name before the parameters and template arguments.
_IDENTIFIER = re.compile(r"([^\W\d]\w*)\s*(?:<.*>)?\s*(?:\(.*)?$", re.DOTALL)


def source_name(symbol: str) -> str | None:
    """The identifier that source code uses for a symbol: `f` for `_ZN2ns1fIiEEvT_`.

    None for an operator, which code uses without its name.
    """
    readable = demangle(symbol)
    if readable == symbol:
        return symbol if symbol.isidentifier() else None
    found = _IDENTIFIER.search(_without_parameters(readable))
    return None if found is None or found[1] == "operator" else found[1]


def find_name(symbol: str, source: Source) -> tuple[int, int]:
    """First and last column of a symbol's first mention in its line, in code points; else zeros."""
    name = source_name(symbol) if source.text is None else symbol  # PTX has mangled names
    line = text_of(source)
    if name is None or line is None:
        return 0, 0
    found = re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", line)
    return (0, 0) if found is None else (found.start() + 1, found.end())


def _without_parameters(readable: str) -> str:
    """`void ns::f<int>` for `void ns::f<int>(int)`: up to the first parenthesis outside of <>."""
    depth = 0
    for at, character in enumerate(readable):
        depth += (character == "<") - (character == ">")
        if character == "(" and depth == 0:
            return readable[:at]
    return readable
