"""Part of merge: reports errors of symbols and calls, with their places in the inputs.

Loaded only if there is something to report. Places are found if the diagnostic is shown.
"""

from __future__ import annotations

from pylink.facts.elf import SHN_COMMON, STT_IMAGES
from pylink.facts.rownumbers import Clash
from pylink.tables import entity_name, symbol_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from pylink._native.tables import Clashes
    from pylink.diagnostics import Diagnostic, Sink
    from pylink.locate.places import Places
    from pylink.locate.references import Reference
    from pylink.phases.results import Merged, Objects

# By kind of a ClashRow (two symbols of one name that contradict each other): the kinds of the
# diagnostic, and of the note on the earlier symbol (None: no note).
CLASH_KINDS: dict[int, tuple[str, str | None]] = {
    Clash.MULTIPLE: ("multiple-definition", "first-defined-here"),
    Clash.SIZE: ("size-mismatch", "first-specified-here"),
    Clash.SPACE: ("space-mismatch", "first-defined-here"),
    Clash.PROTOTYPE: ("prototype-mismatch", "first-defined-here"),
    Clash.GLOBAL: ("not-global", None),
    Clash.MANAGED: ("managed-mismatch", "first-defined-here"),
    Clash.COMMON: ("common-too-large", None),
}

# Most references of a symbol that a diagnostic shows, and most calls of a cycle.
MOST_REFERENCES = 10

# Most references of a symbol whose source lines are looked up, to list each line once.
MOST_LOOKED_UP = 1000

_INSTRUCTION_SIZE = 16  # in bytes

# A call usually follows within this many bytes after the instruction that sets its return address.
_CALL_DISTANCE = 0x20


def report_clashes(merged: Merged, clashes: Clashes, sink: Sink) -> None:
    """Report symbols of one name that contradict each other, and end the link."""
    from pylink.phases.clash_hints import clash_hints

    objects = merged.objects
    for clash in clashes:
        symbol, first = clash.symbol, clash.first
        if clash.kind == Clash.FUNCTION_AS_VARIABLE:
            sink.fatal("function-as-variable", explain=_explain_definition(objects, symbol))
        kind, note = CLASH_KINDS[clash.kind]
        hints, other = clash_hints(merged, kind, symbol, first)
        sink.report(
            kind,
            hints=hints,
            explain=_explain_definition(objects, symbol, note, other),
            symbol=symbol_name(objects, symbol),
            name=_demangled_name(objects, symbol),
            file=objects.names[objects.symbols[symbol].file],
            first=objects.names[objects.symbols[first].file],
        )
    sink.fatal("merge-failed")


def _demangled_name(objects: Objects, symbol: int) -> str:
    from pylink.demangle import demangle

    return demangle(symbol_name(objects, symbol))


def _explain_definition(
    objects: Objects, symbol: int, kind: str | None = None, first: int = -1
) -> Callable[[Diagnostic], None]:
    """Return a function that completes a diagnostic when it is shown.

    It sets the place of the definition `symbol`. Unless `kind` is None or `first` is -1, it adds a
    note of this kind on the symbol row `first`.
    """

    def explain(diagnostic: Diagnostic) -> None:
        places = _places(objects)
        places.fill_definition(diagnostic, symbol)
        if kind is None or first < 0:
            return
        if kind == "first-specified-here":
            size = objects.symbols[first].size
            diagnostic.notes += [places.note_definition(kind, first, size=size)]
        else:
            row = objects.symbols[first]
            is_defined = row.section >= 0 or row.shndx == SHN_COMMON
            diagnostic.notes += [
                places.note_definition(kind if is_defined else "declared-here", first)
            ]

    return explain


def explain_entity(merged: Merged, entity: int, callee: int = -1) -> Callable[[Diagnostic], None]:
    """Return a function that adds the places of an entity and of its callee to a diagnostic.

    `callee` is -1 if there is none to show.
    """
    first = _winner(merged, callee) if callee >= 0 else -1
    return _explain_definition(merged.objects, _winner(merged, entity), "defined-here", first)


def report_undefined(merged: Merged, sink: Sink) -> None:
    """Report the entities that an executable needs and no input defines, with their uses."""
    objects, undefined = merged.objects, merged.undefined
    references: dict[int, list[Reference]] = {}
    hints = _reference_hints(merged, undefined)

    def explain_entity_uses(entity: int) -> Callable[[Diagnostic], None]:
        """Return a function that adds the uses of an undefined entity to a diagnostic."""

        def explain(diagnostic: Diagnostic) -> None:
            if not references:  # one pass finds the references of all symbols
                from pylink.locate.references import find_references

                references.update(find_references(objects, merged.symbol_entity, undefined))
            _list_references(_places(objects), diagnostic, references[entity])

        return explain

    for entity in undefined:
        first = merged.entities[entity].first
        is_image = objects.symbols[first].info & 15 in STT_IMAGES
        sink.report(
            "image-reference" if is_image else "undefined-reference",
            explain=explain_entity_uses(entity),
            symbol=symbol_name(objects, first),
            file=objects.names[objects.symbols[first].file],
            hints=hints.get(entity, ()),
        )


def report_deleted(explain: Callable[[Diagnostic], None], sink: Sink) -> NoReturn:
    """Refuse, in nvlink's words, a reference to a symbol that was deleted."""
    reason = "Internal error: reference to deleted symbol"
    sink.fatal("internal-error", explain=explain, reason=reason)


def _reference_hints(merged: Merged, undefined: Sequence[int]) -> dict[int, list[Diagnostic]]:
    """Return, by undefined entity, hints on files that define it and on similar names.

    If no entity has any, the first one has hints on files whose device code is not linked, and on
    libraries that are missing.
    """
    objects = merged.objects
    names = {entity: entity_name(merged, entity) for entity in undefined}
    names_wanted = set(names.values())
    owners: dict[str, list[Diagnostic]] = {}
    if objects.libraries is not None:
        from pylink.locate.sharedcode import find_owners

        owners = find_owners(objects.job, objects.libraries.libraries, names_wanted)
    from pylink.inputs.filehints import find_hidden_code
    from pylink.inputs.libraries import find_missing, ignored_libraries
    from pylink.locate.candidates import find_candidates, find_locals
    from pylink.locate.libraries import find_library
    from pylink.locate.unlinked import find_unlinked

    candidates = find_candidates(merged, names_wanted)
    hidden = find_locals(merged, names_wanted)
    unlinked = find_unlinked(objects.job, names_wanted)
    hints = {
        entity: [
            *owners.get(name, ()),
            *(_note_candidate(merged, other) for other in candidates.get(name, ())),
            *(_note_candidate(merged, other, "local-definition") for other in hidden.get(name, ())),
            *(unlinked.get(name) or find_library(name)),
        ]
        for entity, name in names.items()
    }
    if not any(hints.values()):
        job = objects.job
        hints[undefined[0]] += find_hidden_code([*job.inputs, *ignored_libraries(job.options)])
        hints[undefined[0]] += find_missing(job.options)
    return hints


def _note_candidate(merged: Merged, entity: int, kind: str = "other-parameters") -> Diagnostic:
    """Return a note that the user may have meant `entity`; its text says where that is."""
    from pylink.demangle import demangle

    objects = merged.objects
    symbol = _winner(merged, entity)
    name = symbol_name(objects, symbol)
    diagnostic = _places(objects).note_definition(kind, symbol, name=demangle(name))
    line = diagnostic.source
    diagnostic.args["place"] = (
        f"{line.file}:{line.line}" if line is not None else diagnostic.file or ""
    )
    return diagnostic


def explain_references(
    objects: Objects, references: list[Reference]
) -> Callable[[Diagnostic], None]:
    """Return a function that adds the uses of a symbol, at least one, to a diagnostic."""
    return lambda diagnostic: _list_references(_places(objects), diagnostic, references)


def _list_references(places: Places, diagnostic: Diagnostic, references: list[Reference]) -> None:
    """Add the place of the first use to a diagnostic, and notes on other lines, up to a limit.

    nvlink names the first file that mentions a symbol. If that does not use it, all uses are notes.
    """
    symbol = diagnostic.symbol
    assert symbol is not None
    distinct = _distinct_lines(places, references[:MOST_LOOKED_UP])
    if not distinct:
        return
    if places.name_of(distinct[0][0]) == diagnostic.file:
        places.fill(diagnostic, *distinct.pop(0), symbol)
    diagnostic.notes += [
        places.note_at("referenced-here", section, offset, symbol=symbol)
        for section, offset in distinct[: MOST_REFERENCES - 1]
    ]
    rest_count = len(distinct[MOST_REFERENCES - 1 :]) + len(references[MOST_LOOKED_UP:])
    if rest_count:
        from pylink.diagnostics.record import note

        diagnostic.notes.append(note("more-references", symbol=symbol, count=rest_count))


def _distinct_lines(places: Places, references: list[Reference]) -> list[Reference]:
    """Return the first reference of each source line of a section, sorted by file and line.

    References without a known line are sorted by section and offset. Two of these at adjacent
    instructions count as one: they load the halves of an address.
    """
    lines: dict[tuple[int, str, int], Reference] = {}
    previous = (-1, 0)
    for section, offset in references:
        frames = places.frames(section, offset)
        if frames:
            key = (section, frames[0].file, frames[0].line)
        elif (section, offset - _INSTRUCTION_SIZE) == previous:
            continue
        else:
            key = (section, "", offset)
        previous = (section, offset)
        lines.setdefault(key, previous)
    by_file = [
        (places.file_of(section), source, line if source else 0, *reference)
        for (section, source, line), reference in lines.items()
    ]
    return [(section, offset) for *_, section, offset in sorted(by_file)]


def report_recursion(merged: Merged, kernels: Sequence[int], sink: Sink) -> None:
    """Report kernels with unbounded stack, with a cycle of calls each.

    `kernels` names a kernel once for each function with unbounded stack that it calls. Each of its
    reports shows the cycle of another such function.
    """
    report_counts: dict[int, int] = {}  # by kernel: its number of reports so far
    for kernel in kernels:
        unbounded_index = report_counts.get(kernel, 0)
        report_counts[kernel] = unbounded_index + 1
        sink.report(
            "stack-size",
            explain=_explain_recursion(merged, kernel, unbounded_index),
            symbol=entity_name(merged, kernel),
        )


def _explain_recursion(
    merged: Merged, kernel: int, unbounded_index: int
) -> Callable[[Diagnostic], None]:
    """Return a function that adds the place of a kernel and the calls of a cycle to a diagnostic.

    `unbounded_index` is the number, from 0, of one of the kernel's callees with unbounded stack.
    """

    def explain(diagnostic: Diagnostic) -> None:
        from pylink.locate.recursion import find_cycle

        places = _places(merged.objects)
        places.fill_definition(diagnostic, _winner(merged, kernel))
        cycle = find_cycle(merged, kernel, unbounded_index)
        diagnostic.notes += [
            _note_call(merged, places, caller, callee)
            for caller, callee in zip(cycle, cycle[1:] + cycle[:1], strict=True)
            if caller < len(merged.entities)
        ][:MOST_REFERENCES]

    return explain


def _note_call(merged: Merged, places: Places, caller: int, callee: int) -> Diagnostic:
    """Return a note on a call of a cycle; `callee` may be a prototype, for an indirect call."""
    objects = merged.objects
    symbol = _winner(merged, caller)
    name = symbol_name(objects, symbol)
    if callee >= len(merged.entities):
        return places.note_definition("indirect-call-here", symbol)
    called = entity_name(merged, callee)
    section = objects.symbols[symbol].section
    offset = _find_call(merged, section, callee, is_self=caller == callee) if section >= 0 else None
    if offset is None:
        return places.note_definition("recursion-here", symbol, callee=called)
    diagnostic = places.note_at("recursion-here", section, offset, symbol=called, callee=called)
    diagnostic.symbol = name
    return diagnostic


def _find_call(merged: Merged, section: int, callee: int, *, is_self: bool) -> int | None:
    """Return the first offset in a function section at which it calls `callee`; None if not found.

    A function's call of itself has no relocation. But the return address, which is set in front of
    any call, has one that names the function itself. If no relocation for another symbol follows
    soon, the offset of that relocation is returned as the place of the call.
    """
    from pylink.locate.references import find_uses

    uses = find_uses(merged.objects, merged.symbol_entity, section)
    other_offsets = [offset for offset, entity in uses if entity != callee]
    for offset, entity in uses:
        if entity == callee and not (
            is_self and any(0 < other - offset <= _CALL_DISTANCE for other in other_offsets)
        ):
            return offset
    return None


def _winner(merged: Merged, entity: int) -> int:
    """Return the symbol row of the entity's winning definition."""
    return merged.entities[entity].winner


def _places(objects: Objects) -> Places:
    """Return the object that finds places of symbols and code, in files and source lines."""
    from pylink.locate.places import places_of  # loaded only if the diagnostic is shown

    return places_of(objects)
