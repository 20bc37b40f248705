"""The templates of functions, from their mangled names."""

from __future__ import annotations

import re

from pylink.demangle import demangle

# Operators whose names contain brackets or parentheses. _SIGN replaces them while brackets are
# counted and the parameters are looked for.
_OPERATOR = re.compile(r"operator ?(\(\)|<=>|<<=|>>=|<<|>>|<=|>=|->\*|->|<(?!<)|>)")
_SIGN = "\0"
_MAX_LENGTH = 200  # most characters of a template; the rest is cut off


def _template_of(name: str) -> str | None:
    """Return the template of a function's readable name, without arguments: `ns::Foo<>::bar<>`.

    None for names that are not instances of a template. A long result is cut to _MAX_LENGTH.
    """
    operators = [match[1] for match in _OPERATOR.finditer(name)]
    text = _OPERATOR.sub(f"operator{_SIGN}", name)
    pieces, depth, has_parameters = [], 0, False
    for character in text:
        if character == ">" and depth:
            depth -= 1
            if not depth:
                pieces.append(">")
            continue
        if character == "<":
            if not depth:
                pieces.append("<")
            depth += 1
        elif not depth:
            if character == "(":
                has_parameters = True
                break
            pieces.append(character)
    if depth or not has_parameters:
        return None
    # The result type precedes the name.
    *_, template = "".join(pieces).split(" ")
    if "<>" not in template:
        return None
    for operator in operators[-template.count(_SIGN) :] if _SIGN in template else ():
        template = template.replace(_SIGN, operator, 1)
    return template[:_MAX_LENGTH]


def describe(function: str) -> tuple[str, str | None]:
    """Return the readable form of a mangled name, and its template or None."""
    name = demangle(function)
    return name, _template_of(name)
