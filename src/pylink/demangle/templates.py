"""The templates of functions, from their mangled names."""

from __future__ import annotations

import re

from pylink.demangle import demangle

# Operators whose names look like brackets.
_OPERATOR = re.compile(r"operator ?(\(\)|<=>|<<=|>>=|<<|>>|<=|>=|->\*|->|<(?!<)|>)")
_SIGN = "\0"
_MAX_LENGTH = 200


def template_of(name: str) -> str | None:
    """The template of an instance's readable name, as `ns::Foo<>::bar<>`; None for other names."""
    operators = [match[1] for match in _OPERATOR.finditer(name)]
    text = _OPERATOR.sub(f"operator{_SIGN}", name)
    pieces, depth, cut = [], 0, False
    for sign in text:
        if sign == ">" and depth:
            depth -= 1
            if not depth:
                pieces.append(">")
            continue
        if sign == "<":
            if not depth:
                pieces.append("<")
            depth += 1
        elif not depth:
            if sign == "(":
                cut = True
                break
            pieces.append(sign)
    if depth or not cut:
        return None
    # The result type precedes the name.
    *_, last = "".join(pieces).split(" ")
    if "<>" not in last:
        return None
    for operator in operators[-last.count(_SIGN) :] if _SIGN in last else ():
        last = last.replace(_SIGN, operator, 1)
    return last[:_MAX_LENGTH]


def describe(function: str) -> tuple[str, str | None]:
    """The readable form of a mangled name, and its template or None."""
    name = demangle(function)
    return name, template_of(name)
