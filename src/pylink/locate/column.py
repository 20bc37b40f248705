"""Finds the column of a symbol in a source line, since ptxas writes no columns to line tables."""

from __future__ import annotations

import re

from pylink.demangle import demangle
from pylink.diagnostics.sourcefiles import Withheld

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics.record import Source
    from pylink.diagnostics.sourcefiles import SourceFiles

# The last name outside of brackets, in front of a method's qualifiers.
_IDENTIFIER = re.compile(r"([^\W\d]\w*)(?:\s+(?:const|volatile))*\s*$")
_OPERATOR = re.compile(r"\boperator\b")


def source_name(symbol: str) -> str | None:
    """Return the identifier of a symbol in source code: `f` for `_ZN2ns1fIiEEvT_`.

    None for an operator, which is called without its name, and for what is not an identifier.
    """
    readable = demangle(symbol)
    if readable == symbol:
        return symbol if symbol.isidentifier() else None
    outside = _outside_brackets(readable)
    match = None if _OPERATOR.search(outside) else _IDENTIFIER.search(outside)
    return None if match is None else match[1]


def find_name(symbol: str, source: Source, files: SourceFiles) -> tuple[int, int]:
    """Return first and last column of a symbol in its source line, from 1, in code points.

    Both are 0 if it is not found, or if the line must not be shown to the user.
    """
    name = source_name(symbol) if source.text is None else symbol  # PTX has mangled names
    try:
        line = files.line(source)
    except Withheld:
        return 0, 0
    if name is None or line is None:
        return 0, 0
    match = re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", line)
    return (0, 0) if match is None else (match.start() + 1, match.end())


def _outside_brackets(readable: str) -> str:
    """Return `ns::f::x` for `ns::f<void (int)>(int)::x`: no parameters, no template arguments."""
    depth = 0
    outside = []
    for character in readable:
        if character in "<(":
            depth += 1
        elif character in ">)":
            depth = max(depth - 1, 0)
        elif depth == 0:
            outside.append(character)
    return "".join(outside)
