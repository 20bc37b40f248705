"""Part of merge: what is wrong with symbols and calls, each with its places in the inputs.

Loaded only when there is something to report. The places are found when somebody looks at them.
"""

from __future__ import annotations

from pylink.facts.elf import SHN_COMMON, STT_IMAGES
from pylink.tables import entity_name, symbol_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pylink._native.tables import Clashes
    from pylink.diagnostics import Diagnostic, Sink
    from pylink.locate.places import Places
    from pylink.locate.references import Reference
    from pylink.phases.results import Merged, Objects

# Kinds of a ClashRow (rows.pxd has the same numbers), and of the note on the earlier definition.
CLASHES: dict[int, tuple[str, str | None]] = {
    1: ("multiple-definition", "first-defined-here"),
    2: ("size-mismatch", "first-specified-here"),
    3: ("space-mismatch", "first-defined-here"),
    4: ("prototype-mismatch", "first-defined-here"),
    6: ("not-global", None),
    7: ("managed-mismatch", "first-defined-here"),
    8: ("common-too-large", None),
}
NO_NODE = 5

# A symbol that is used everywhere needs no longer list to be found.
MOST_REFERENCES = 10

# So many references are looked up to find out which are on one line.
MOST_LOOKED_UP = 1000

_INSTRUCTION = 16

# Most return addresses are set this many bytes before the call.
_CALL_FOLLOWS = 0x20


def report_clashes(merged: Merged, clashes: Clashes, sink: Sink) -> None:
    """Definitions that exclude each other; ends the link."""
    from pylink.phases.clash_hints import clash_hints

    objects = merged.objects
    for clash in clashes:
        symbol, first = clash.symbol, clash.first
        if clash.kind == NO_NODE:
            sink.fatal("function-as-variable", explain=_definition(objects, symbol))
        kind, note = CLASHES[clash.kind]
        hints, other = clash_hints(merged, kind, symbol, first)
        sink.report(
            kind,
            hints=hints,
            explain=_definition(objects, symbol, note, other),
            symbol=symbol_name(objects, symbol),
            name=_readable(objects, symbol),
            file=objects.names[objects.symbols[symbol].file],
            first=objects.names[objects.symbols[first].file],
        )
    sink.fatal("merge-failed")


def _readable(objects: Objects, symbol: int) -> str:
    from pylink.demangle import demangle

    return demangle(symbol_name(objects, symbol))


def _definition(
    objects: Objects, symbol: int, kind: str | None = None, first: int = -1
) -> Callable[[Diagnostic], None]:
    """Where a symbol row is defined, with a note of a kind on where another is."""

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
    """Where an entity is defined, with a note on where another one is, that it calls."""
    first = _winner(merged, callee) if callee >= 0 else -1
    return _definition(merged.objects, _winner(merged, entity), "defined-here", first)


def report_undefined(merged: Merged, undefined: Sequence[int], sink: Sink) -> None:
    """Symbols without a definition, with the places that use them."""
    objects = merged.objects
    references: dict[int, list[Reference]] = {}
    hints = _hints(merged, undefined)

    def explained(entity: int) -> Callable[[Diagnostic], None]:
        def explain(diagnostic: Diagnostic) -> None:
            if not references:  # one pass finds those of all symbols
                from pylink.locate.references import find_references

                references.update(find_references(objects, merged.symbol_entity, undefined))
            _list_references(_places(objects), diagnostic, references[entity])

        return explain

    for entity in undefined:
        first = merged.entities[entity].first
        is_image = objects.symbols[first].info & 15 in STT_IMAGES
        sink.report(
            "image-reference" if is_image else "undefined-reference",
            explain=explained(entity),
            symbol=symbol_name(objects, first),
            file=objects.names[objects.symbols[first].file],
            hints=hints.get(entity, ()),
        )


def _hints(merged: Merged, undefined: Sequence[int]) -> dict[int, list[Diagnostic]]:
    """What may help with undefined entities: files that have them, or something of their name."""
    objects = merged.objects
    names = {entity: entity_name(merged, entity) for entity in undefined}
    wanted = set(names.values())
    owners: dict[str, list[Diagnostic]] = {}
    if objects.libraries is not None:
        from pylink.locate.sharedcode import find_owners

        owners = find_owners(objects.job, objects.libraries.libraries, wanted)
    from pylink.inputs.filehints import find_hidden_code
    from pylink.inputs.libraries import find_missing, passed_over
    from pylink.locate.candidates import find_candidates, find_locals
    from pylink.locate.libraries import find_library
    from pylink.locate.unlinked import find_unlinked

    candidates = find_candidates(merged, wanted)
    hidden = find_locals(merged, wanted)
    unlinked = find_unlinked(objects.job, wanted)
    hints = {
        entity: [
            *owners.get(name, ()),
            *(_did_you_mean(merged, other) for other in candidates.get(name, ())),
            *(_did_you_mean(merged, other, "local-definition") for other in hidden.get(name, ())),
            *(unlinked.get(name) or find_library(name)),
        ]
        for entity, name in names.items()
    }
    if not any(hints.values()):
        job = objects.job
        hints[undefined[0]] += find_hidden_code([*job.inputs, *passed_over(job.options)])
        hints[undefined[0]] += find_missing(job.options)
    return hints


def _did_you_mean(merged: Merged, entity: int, kind: str = "other-parameters") -> Diagnostic:
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
    """The places of a symbol's uses, of which there are some."""
    return lambda diagnostic: _list_references(_places(objects), diagnostic, references)


def _list_references(places: Places, diagnostic: Diagnostic, references: list[Reference]) -> None:
    """The first use is the place of the record; a note tells of each other line, up to a limit.

    nvlink names the first file that mentions a symbol, which need not use it.
    """
    symbol = diagnostic.symbol
    assert symbol is not None
    shown = _on_distinct_lines(places, references[:MOST_LOOKED_UP])
    if not shown:
        return
    if places.name_of(shown[0][0]) == diagnostic.file:
        places.fill(diagnostic, *shown.pop(0), symbol)
    diagnostic.notes += [
        places.note_at("referenced-here", section, offset, symbol=symbol)
        for section, offset in shown[: MOST_REFERENCES - 1]
    ]
    more = len(shown[MOST_REFERENCES - 1 :]) + len(references[MOST_LOOKED_UP:])
    if more:
        from pylink.diagnostics.record import note

        diagnostic.notes.append(note("more-references", symbol=symbol, count=more))


def _on_distinct_lines(places: Places, references: list[Reference]) -> list[Reference]:
    """The first reference of each line, by file and line.

    Where lines are unknown, they come by section and offset, and two instructions in a row count as
    one: they load the halves of an address.
    """
    lines: dict[tuple[int, str, int], Reference] = {}
    last = (-1, 0)
    for section, offset in references:
        frames = places.frames(section, offset)
        if frames:
            key = (section, frames[0].file, frames[0].line)
        elif (section, offset - _INSTRUCTION) == last:
            continue
        else:
            key = (section, "", offset)
        last = (section, offset)
        lines.setdefault(key, last)
    by_file = [
        (places.file_of(section), source, line if source else 0, *at)
        for (section, source, line), at in lines.items()
    ]
    return [(section, offset) for *_, section, offset in sorted(by_file)]


def report_recursion(merged: Merged, kernels: Sequence[int], sink: Sink) -> None:
    """Kernels whose stack has no bound, with the calls that take it away."""
    turns: dict[int, int] = {}
    for kernel in kernels:
        turn = turns.get(kernel, 0)
        turns[kernel] = turn + 1
        sink.report(
            "stack-size",
            explain=_recursion(merged, kernel, turn),
            symbol=entity_name(merged, kernel),
        )


def _recursion(merged: Merged, kernel: int, turn: int) -> Callable[[Diagnostic], None]:
    def explain(diagnostic: Diagnostic) -> None:
        from pylink.locate.recursion import find_cycle

        places = _places(merged.objects)
        places.fill_definition(diagnostic, _winner(merged, kernel))
        cycle = find_cycle(merged, kernel, turn)
        diagnostic.notes += [
            _note_call(merged, places, caller, callee)
            for caller, callee in zip(cycle, cycle[1:] + cycle[:1], strict=True)
            if caller < len(merged.entities)
        ][:MOST_REFERENCES]

    return explain


def _note_call(merged: Merged, places: Places, caller: int, callee: int) -> Diagnostic:
    """A call of a recursion; `callee` may be a prototype, which an indirect call goes through."""
    objects = merged.objects
    symbol = _winner(merged, caller)
    name = symbol_name(objects, symbol)
    if callee >= len(merged.entities):
        return places.note_definition("indirect-call-here", symbol)
    called = entity_name(merged, callee)
    section = objects.symbols[symbol].section
    offset = _find_call(merged, section, callee, own=caller == callee) if section >= 0 else None
    if offset is None:
        return places.note_definition("recursion-here", symbol, callee=called)
    diagnostic = places.note_at("recursion-here", section, offset, symbol=called, callee=called)
    diagnostic.symbol = name
    return diagnostic


def _find_call(merged: Merged, section: int, callee: int, *, own: bool) -> int | None:
    """The first offset in a function that refers to a callee.

    A call of itself needs no relocation, but the return address before it does, as it does before
    any call: one that no relocation for another function follows is that of a call of itself.
    """
    from pylink.locate.references import find_uses

    uses = find_uses(merged.objects, merged.symbol_entity, section)
    others = [offset for offset, entity in uses if entity != callee]
    for offset, entity in uses:
        if entity == callee and not (
            own and any(0 < other - offset <= _CALL_FOLLOWS for other in others)
        ):
            return offset
    return None


def _winner(merged: Merged, entity: int) -> int:
    """The symbol row of the definition that counts."""
    return merged.entities[entity].winner


def _places(objects: Objects) -> Places:
    from pylink.locate.places import places_of  # only where they are looked at

    return places_of(objects)
