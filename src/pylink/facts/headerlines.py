"""Lines of Cython that define facts as C constants: numbers, and tables of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping


def integer_constants(module: object, prefixes: tuple[str, ...]) -> dict[str, int]:
    """Return the integer constants of a module whose names begin with one of `prefixes`."""
    values = {name: value for name, value in vars(module).items() if isinstance(value, int)}
    return {name: value for name, value in values.items() if name.startswith(prefixes)}


def enum_lines(names: Mapping[str, int]) -> Iterator[str]:
    """Yield the lines of an enum with these names and values."""
    yield "cdef enum:"
    for name, value in names.items():
        yield f"    {name} = {value:#x}U" if value > 0x7FFFFFFF else f"    {name} = {value}"
    yield ""


def table_lines(
    struct: str, columns: Iterable[str], name: str, rows: Iterable[str]
) -> Iterator[str]:
    """Yield lines that define the C array `name` of structs and declare it for Cython.

    `columns` are the declarations of the fields, `rows` are initializers in braces.
    """
    yield "cdef extern from *:"
    yield '    """'
    yield "    typedef struct {"
    yield from (f"{line};" for line in columns)
    yield f"    }} {struct};"
    yield f"    static const {struct} {name}[] FACTS_UNUSED = {{"
    yield from (f"        {row}," for row in rows)
    yield "    };"
    yield '    """'
    yield f"    ctypedef struct {struct}:"
    yield from columns
    yield f"    const {struct} {name}[]"
    yield ""
