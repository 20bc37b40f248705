"""Demangles C++ names of the Itanium ABI in the notation of nvlink's call graph.

Template parameters stay `T1`, `T2`, ... and a value among template arguments has its type in front:
`f<(int)3>`. Namespaces that the compiler creates for a file, `_INTERNAL...`, are omitted. The texts
were compared with nvlink's. A name that is not understood, or that nvlink does not demangle, stays
unchanged.
"""

from __future__ import annotations

from pylink.demangle.cursor import NotMangled
from pylink.demangle.names import NameParser

# Prefix of the names of functions that are local to a file: `__nv_static_` LENGTH `_` FILE `_` and
# the mangled name, where LENGTH is that of FILE.
STATIC_PREFIX = "__nv_static_"


def demangle(name: str) -> str:
    """Return the readable form of a symbol's name; the name itself if it cannot be demangled."""
    try:
        return _demangle(name)
    except (NotMangled, RecursionError):
        return name


def _demangle(name: str) -> str:
    """Return the readable form of a symbol's name; NotMangled if it cannot be demangled."""
    if name.startswith("$_Z"):
        return _demangle(name[1:])
    if name.startswith(STATIC_PREFIX):
        parser = NameParser(name, len(STATIC_PREFIX))
        length = parser.number()
        parser.require("_")
        parser.position += length
        parser.require("_")
        return _demangle(name[parser.position :])
    if not name.startswith("_Z"):
        raise NotMangled
    parser = NameParser(name, 2)
    text = parser.encoding()
    # CALLER$FUNCTION names a copy of a function that the compiler made for one caller. NAME$NUMBER
    # has the text of NAME.
    while parser.consume("$"):
        suffix = name[parser.position :]
        if suffix[:1].isdecimal():
            if not suffix.isdecimal():
                raise NotMangled
            return text
        if not suffix.startswith("_Z"):
            return f"[clone {text}] {suffix}"
        parser = NameParser(name, parser.position + 2)
        text = f"[clone {text}] {parser.encoding()}"
    if parser.position < len(name):
        raise NotMangled
    return text
