"""Part of merge: reports variables of modules that a library's image has, too.

Each image then has its own copy of them. Loaded only in links with such modules.
"""

from __future__ import annotations

import re

from pylink.demangle import demangle
from pylink.diagnostics.stream import to_bytes
from pylink.facts import sectionkinds
from pylink.facts.elf import STO_MANAGED, STT_FUNC, STT_SECTION
from pylink.facts.rownumbers import EntityFlag, Resolution
from pylink.locate.references import find_references
from pylink.phases.report_symbols import explain_references
from pylink.tables import symbol_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pylink.diagnostics import Sink
    from pylink.locate.references import Reference
    from pylink.phases.results import Merged, Objects


_KINDS_OF_VARIABLES = (sectionkinds.GLOBAL, sectionkinds.GLOBAL_INIT, sectionkinds.CONSTANT)


def report_borrowed(merged: Merged, sink: Sink) -> None:
    """Report variables of modules that a library's image has, too, if live code or data uses them.

    Managed variables of borrowed modules, which only the library registers, are refused; others
    get a warning. A constant variable counts only if host code of the libraries may write it: if
    that code names the variable, or if it is not known what it names (`libraries.written` is None).
    """
    objects = merged.objects
    libraries = objects.libraries
    assert libraries is not None
    variables: dict[int, int] = {}  # symbol row by entity
    for number, source_number in enumerate(objects.source_numbers):
        if source_number in libraries.copied:
            for symbol in _defined_variables(objects, number):
                variables.setdefault(merged.symbol_entity[symbol], symbol)
    uses = find_references(objects, merged.symbol_entity, variables)
    is_written = _make_matcher(libraries.written)
    for entity, symbol in variables.items():
        references = [use for use in uses[entity] if _is_linked(merged, use)]
        if not references:
            continue
        row = objects.symbols[symbol]
        name = symbol_name(objects, symbol)
        if row.other & STO_MANAGED and objects.source_numbers[row.file] in libraries.borrowed:
            kind = "library-managed"
        elif objects.sections[row.section].kind == sectionkinds.CONSTANT and not is_written(name):
            continue
        else:
            kind = "library-state"
        sink.report(
            kind,
            explain=explain_references(objects, references),
            symbol=name,
            name=_source_name(name),
            file=objects.names[row.file],
            owner=libraries.copied[objects.source_numbers[row.file]],
        )


def _defined_variables(objects: Objects, number: int) -> Iterator[int]:
    """Yield the symbol rows of variables that a file defines."""
    file = objects.files[number]
    for symbol in range(file.first_symbol, file.first_symbol + file.symbol_count):
        row = objects.symbols[symbol]
        if (
            row.section >= 0
            and row.info & 15 not in (STT_FUNC, STT_SECTION)
            and objects.sections[row.section].kind in _KINDS_OF_VARIABLES
        ):
            yield symbol


def _source_name(name: str) -> str:
    """Return the demangled name; for a static variable, without the id of its module in front.

    The compiler calls static variables `__nv_static_` SIZE `_` ID `_` NAME, where SIZE is the
    number of characters in ID.
    """
    prefix = re.match(r"__nv_static_(\d+)_", name)
    if prefix is not None:
        name = name[prefix.end() + int(prefix[1]) + 1 :] or name
    return demangle(name)


def _is_linked(merged: Merged, use: Reference) -> bool:
    """Return whether the section of a use is data, or the winning copy of a live function."""
    section, _ = use
    function = merged.section_function[section]
    if function < 0:
        return True
    is_live = merged.entities[function].flags & EntityFlag.LIVE
    return bool(is_live) and merged.section_resolution[section] not in (
        Resolution.LOST,
        Resolution.LOST_EARLY,
        Resolution.REPLACED,
    )


def _make_matcher(patterns: list[bytes] | None) -> Callable[[str], bool]:
    """Make a function that says whether a name matches a pattern; `*` is for any characters.

    Without patterns (None) every name matches.
    """
    if patterns is None:
        return lambda name: True
    expression = b"|".join(b".*".join(map(re.escape, pattern.split(b"*"))) for pattern in patterns)
    matches = re.compile(expression, re.DOTALL).fullmatch if patterns else None
    return lambda name: matches is not None and matches(to_bytes(name)) is not None
