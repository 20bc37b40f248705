"""Functions that could be meant where one of the same name and other parameters is called."""

from __future__ import annotations

import re

from pylink.demangle import demangle
from pylink.tables import DEFINED, FUNCTION_KIND, LOCAL, entity_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from pylink.phases.results import Merged

# So many are named of one function.
MOST_CANDIDATES = 3

# In front of the parameters; a template or an operator may have parentheses of its own.
_PARAMETERS = re.compile(r"\((?:[^()]|\([^()]*\))*\)(?: const)?$")

# The innermost arguments of templates.
_ARGUMENTS = re.compile(r"<[^<>]*>")


def find_candidates(merged: Merged, names: Collection[str]) -> dict[str, list[int]]:
    """For each mangled name, defined functions, as entities, that could be meant.

    Those of the same name in source, with other parameters; where there are none, those in another
    scope, or of another instantiation of a template.
    """
    demangled = {name: demangle(name) for name in names}
    last_parts = {_plain(readable).rpartition("::")[2] for readable in demangled.values()}
    same: dict[str, list[int]] = {}
    like: dict[str, list[int]] = {}
    for number, row in enumerate(merged.entities):
        if row.kind != FUNCTION_KIND or not row.flags & DEFINED or row.flags & LOCAL:
            continue
        mangled = entity_name(merged, number)
        if mangled in demangled or not any(word in mangled for word in last_parts):
            continue
        other = demangle(mangled)
        for name, readable in demangled.items():
            if (_base(readable) or readable) == (_base(other) or other):
                same.setdefault(name, []).append(number)
            elif _within(_plain(readable), _plain(other)):
                like.setdefault(name, []).append(number)
    candidates = {**like, **same}
    return {name: numbers[:MOST_CANDIDATES] for name, numbers in candidates.items()}


def find_locals(merged: Merged, names: Collection[str]) -> dict[str, list[int]]:
    """For each mangled name, the functions of the same name and parameters that are local."""
    names_of = {demangle(name): name for name in names}
    last_parts = {_word(readable) for readable in names_of}
    locals_of: dict[str, list[int]] = {}
    for number, row in enumerate(merged.entities):
        if row.kind != FUNCTION_KIND or not row.flags & DEFINED or not row.flags & LOCAL:
            continue
        mangled = entity_name(merged, number)
        if any(word in mangled for word in last_parts):
            readable = demangle(mangled).replace("(anonymous namespace)::", "")
            meant = names_of.get(readable)
            if meant is not None and len(locals_of.setdefault(meant, [])) < MOST_CANDIDATES:
                locals_of[meant].append(number)
    return locals_of


def _plain(readable: str) -> str:
    """A demangled name without parameters, template arguments and the type of the result."""
    name = _base(readable) or readable
    while name != (name := _ARGUMENTS.sub("", name)):
        pass
    return name.rpartition(" ")[2]


def _within(name: str, other: str) -> bool:
    """Whether one of two names is the other in an inner scope, or both are the same."""
    return f"::{name}".endswith(f"::{other}") or f"::{other}".endswith(f"::{name}")


def _word(readable: str) -> str:
    """The last part of a demangled name, which the mangled one contains."""
    return (_base(readable) or readable).rpartition("::")[2].partition("<")[0]


def _base(readable: str) -> str | None:
    """A demangled name without its parameters, None for what has none."""
    match = _PARAMETERS.search(readable)
    return readable[: match.start()] if match else None
