"""C++ names as nvlink's call graph shows them: the Itanium ABI's mangling, in nvlink's own words.

Template parameters stay `T1`, `T2`, ... and arguments show their types, `f<(int)3>`; namespaces
that the compiler makes for a file vanish. Texts were measured; a name that is not understood, or
that nvlink does not take apart, is shown as it is.
"""

from __future__ import annotations

from pylink.demangle.cursor import NotMangled
from pylink.demangle.names import NameParser

# In front of functions that are local to a file: a length, the file's name, then the mangled name.
STATIC = "__nv_static_"


def demangle(name: str) -> str:
    """The readable form of a symbol's name, or the name itself."""
    try:
        return _demangle(name)
    except (NotMangled, RecursionError):
        return name


def _demangle(name: str) -> str:
    if name.startswith("$_Z"):
        return _demangle(name[1:])
    if name.startswith(STATIC):
        parser = NameParser(name, len(STATIC))
        length = parser.number()
        parser.need("_")
        parser.at += length
        parser.need("_")
        return _demangle(name[parser.at :])
    if not name.startswith("_Z"):
        raise NotMangled
    parser = NameParser(name, 2)
    text = parser.encoding()
    # A function that the compiler copied for one caller is named after the caller.
    while parser.take("$"):
        rest = name[parser.at :]
        if rest[:1].isdecimal():
            if not rest.isdecimal():
                raise NotMangled
            return text
        if not rest.startswith("_Z"):
            return f"[clone {text}] {rest}"
        parser = NameParser(name, parser.at + 2)
        text = f"[clone {text}] {parser.encoding()}"
    if parser.at < len(name):
        raise NotMangled
    return text
