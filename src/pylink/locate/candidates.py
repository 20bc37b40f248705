"""Finds functions that an undefined reference may mean: same name, other parameters or scope."""

from __future__ import annotations

import re

from pylink.demangle import demangle
from pylink.facts.rownumbers import EntityFlag, EntityKind
from pylink.tables import entity_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from pylink.phases.results import Merged

# Most functions that a diagnostic lists as those that an undefined function could mean.
MOST_CANDIDATES = 3

# The parameters at the end of a name; they may contain one level of parentheses.
_PARAMETERS = re.compile(r"\((?:[^()]|\([^()]*\))*\)(?: const)?$")

# The innermost arguments of templates.
_ARGUMENTS = re.compile(r"<[^<>]*>")


def find_candidates(merged: Merged, names: Collection[str]) -> dict[str, list[int]]:
    """Return, by mangled name, the entities (symbol numbers) of functions that could be meant.

    Such a function is defined and not local, and has the same name in source and other parameters.
    If there is none, functions of that name in an inner or outer scope, or other instantiations of
    a template, are returned. A name has at most MOST_CANDIDATES; without any, it is not in the
    result.
    """
    demangled = {name: demangle(name) for name in names}
    last_parts = {_bare_name(readable).rpartition("::")[2] for readable in demangled.values()}
    # By name: the entities of that name in source, and those that are similar.
    by_name: dict[str, list[int]] = {}
    similar: dict[str, list[int]] = {}
    for number, row in enumerate(merged.entities):
        if (
            row.kind != EntityKind.FUNC
            or not row.flags & EntityFlag.DEFINED
            or row.flags & EntityFlag.LOCAL
        ):
            continue
        mangled = entity_name(merged, number)
        if mangled in demangled or not any(word in mangled for word in last_parts):
            continue
        other = demangle(mangled)
        for name, readable in demangled.items():
            if (_without_parameters(readable) or readable) == (_without_parameters(other) or other):
                by_name.setdefault(name, []).append(number)
            elif _is_in_inner_scope(_bare_name(readable), _bare_name(other)):
                similar.setdefault(name, []).append(number)
    candidates = {**similar, **by_name}
    return {name: numbers[:MOST_CANDIDATES] for name, numbers in candidates.items()}


def find_locals(merged: Merged, names: Collection[str]) -> dict[str, list[int]]:
    """Return, by mangled name, entities of local functions with the same name and parameters.

    The anonymous namespaces in their names are ignored. At most MOST_CANDIDATES are listed for a
    name; without any, it is not in the result.
    """
    names_of = {demangle(name): name for name in names}
    last_parts = {_last_part(readable) for readable in names_of}
    locals_of: dict[str, list[int]] = {}
    for number, row in enumerate(merged.entities):
        if (
            row.kind != EntityKind.FUNC
            or not row.flags & EntityFlag.DEFINED
            or not row.flags & EntityFlag.LOCAL
        ):
            continue
        mangled = entity_name(merged, number)
        if any(word in mangled for word in last_parts):
            readable = demangle(mangled).replace("(anonymous namespace)::", "")
            meant = names_of.get(readable)
            if meant is not None and len(locals_of.setdefault(meant, [])) < MOST_CANDIDATES:
                locals_of[meant].append(number)
    return locals_of


def _bare_name(readable: str) -> str:
    """Return a demangled name without parameters, template arguments and result type."""
    name = _without_parameters(readable) or readable
    while name != (name := _ARGUMENTS.sub("", name)):
        pass
    return name.rpartition(" ")[2]


def _is_in_inner_scope(name: str, other: str) -> bool:
    """Return whether two names are equal, or one is the other in an inner scope."""
    return f"::{name}".endswith(f"::{other}") or f"::{other}".endswith(f"::{name}")


def _last_part(readable: str) -> str:
    """Return the last part of a demangled name, which the mangled name contains."""
    return _bare_name(readable).rpartition("::")[2]


def _without_parameters(readable: str) -> str | None:
    """Return a demangled name without its parameters; None for a name without parameters."""
    match = _PARAMETERS.search(readable)
    return readable[: match.start()] if match else None
