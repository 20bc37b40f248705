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


def find_candidates(merged: Merged, names: Collection[str]) -> dict[str, list[int]]:
    """For each mangled name, the defined functions, as entities, of the same name in source."""
    wanted: dict[str, str] = {}  # name in source: a mangled one
    for name in names:
        base = _base(demangle(name))
        if base is not None or name.isidentifier():
            wanted.setdefault(base or name, name)
    found: dict[str, list[int]] = {}
    words = {name.rpartition("::")[2].partition("<")[0] for name in wanted}
    for number, row in enumerate(merged.entities):
        if row.kind != FUNCTION_KIND or not row.flags & DEFINED or row.flags & LOCAL:
            continue
        mangled = entity_name(merged, number)
        if mangled in names or not any(word in mangled for word in words):
            continue
        readable = demangle(mangled)
        meant = wanted.get(_base(readable) or mangled)
        if meant is not None and len(found.setdefault(meant, [])) < MOST_CANDIDATES:
            found[meant].append(number)
    return found


def find_locals(merged: Merged, names: Collection[str]) -> dict[str, list[int]]:
    """For each mangled name, the functions of the same name and parameters that are local."""
    wanted = {demangle(name): name for name in names}
    words = {_word(readable) for readable in wanted}
    found: dict[str, list[int]] = {}
    for number, row in enumerate(merged.entities):
        if row.kind != FUNCTION_KIND or not row.flags & DEFINED or not row.flags & LOCAL:
            continue
        mangled = entity_name(merged, number)
        if any(word in mangled for word in words):
            readable = demangle(mangled).replace("(anonymous namespace)::", "")
            meant = wanted.get(readable)
            if meant is not None and len(found.setdefault(meant, [])) < MOST_CANDIDATES:
                found[meant].append(number)
    return found


def _word(readable: str) -> str:
    """The last part of a demangled name, which the mangled one contains."""
    return (_base(readable) or readable).rpartition("::")[2].partition("<")[0]


def _base(readable: str) -> str | None:
    """A demangled name without its parameters, None for what has none."""
    match = _PARAMETERS.search(readable)
    return readable[: match.start()] if match else None
