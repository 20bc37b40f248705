"""--Map: where everything in the output comes from, and why symbols were kept or removed."""

from __future__ import annotations

from collections import defaultdict
from struct import iter_unpack

from pylink.demangle import demangle
from pylink.diagnostics.stream import printable, show, to_bytes
from pylink.errors import reason_of
from pylink.facts.elf import SHT_NOBITS
from pylink.outputs.wholefile import write_whole
from pylink.phases.layout import Placed
from pylink.tables import (
    CALL,
    DEFINED,
    DESELECTED,
    DIRECT_CALL,
    ENTITY,
    FUNCTION_KIND,
    KERNEL,
    LIVE,
    LOST,
    OUT,
    PLACE,
    REPLACED,
    SECTION,
    SYMBOL,
    TAKEN,
    rows,
    section_name,
    string,
    symbol_file,
    symbol_name,
)
from pylink.watch.observers import Observer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylink.diagnostics import Sink
    from pylink.phases.read import Objects

STANDARD_OUTPUT = "-"

WRITTEN_ANEW = 1  # PlaceRow.made; rows.pxd has the same


class MapObserver(Observer):
    """Writes the map of a link that made its output."""

    __slots__ = ("_file", "_placed", "_sink")

    of_cubins = True

    def __init__(self, file: str, sink: Sink) -> None:
        self._file = file
        self._sink = sink
        self._placed: Placed | None = None

    def after(self, tag: str, result: object) -> None:
        if tag == "layout":
            assert isinstance(result, Placed)
            self._placed = result

    def close(self, *, failed: bool) -> None:
        if failed or self._placed is None:
            return
        text = "".join(map_lines(self._placed))
        try:
            if self._file == STANDARD_OUTPUT:
                show(text)
            else:
                write_whole(self._file, to_bytes(text))
        except (OSError, ValueError) as error:
            self._sink.fatal("cannot-write-file", file=self._file, reason=reason_of(error))


def map_lines(placed: Placed) -> Iterator[str]:
    """The map, line by line: sections in file order, then symbols kept, then symbols removed."""
    yield from section_lines(placed)
    yield "\n"
    yield from kept_lines(placed)
    yield "\n"
    yield from removed_lines(placed)


def section_lines(placed: Placed) -> Iterator[str]:
    """A line per output section, and below it one per input section that it holds.

    A cubin has no addresses before it is loaded: `address` is sh_addr, 0 in all sections.
    Contributions give their offset in the section, but for those from which the linker writes the
    section anew: there they have none. A section without any is made by the linker.
    """
    merged = placed.merged
    objects = merged.objects
    contributions = defaultdict(list)
    bases = iter_unpack("<Q", merged.base)
    for number, ((out,), (base,)) in enumerate(
        zip(iter_unpack("<i", merged.out_of), bases, strict=True)
    ):
        if out >= 0:
            contributions[out].append((base, number))
    yield f"{'Offset':>12} {'Address':>8} {'Size':>12} {'Align':>6}  Section\n"
    for (out,) in iter_unpack("<i", placed.section_order):
        offset, size, name, made = PLACE.unpack_from(placed.places, out * PLACE.size)
        row = OUT.unpack_from(placed.outs, out * OUT.size)
        title = printable(string(placed.shstrtab, name))
        size = row[6] if row[4] == SHT_NOBITS else size
        yield f"{offset:#12x} {0:#8x} {size:#12x} {max(row[7], 1):6}  {title}\n"
        for base, number in sorted(contributions[out]):
            section = SECTION.unpack_from(objects.sections, number * SECTION.size)
            file = printable(objects.names[section[10]])
            inner = printable(section_name(objects.arena, objects.sections, number))
            place = "-" if made == WRITTEN_ANEW else f"{base:#x}"
            yield f"{place:>12} {'':8} {section[2]:#12x} {section[8]:6}      {file}:({inner})\n"


def kept_lines(placed: Placed) -> Iterator[str]:
    """The symbols that an input defines and the output has, with what kept each."""
    merged = placed.merged
    objects = merged.objects
    callers = first_callers(placed)
    yield f"{'Size':>12}  Kept symbols\n"
    for number, row in enumerate(rows(merged.entities, ENTITY)):
        if row[3] & DEFINED and row[3] & LIVE:
            yield from symbol_lines(objects, row[1], _kept_because(placed, number, row, callers))


def symbol_lines(objects: Objects, symbol: int, reason: str) -> Iterator[str]:
    """A definition: its bytes, name and file, and why; then its readable name, if it has one."""
    row = SYMBOL.unpack_from(objects.symbols, symbol * SYMBOL.size)
    name = symbol_name(objects.arena, objects.symbols, symbol)
    yield f"{row[2]:#12x}  {printable(name)}  {printable(objects.names[row[5]])}: {reason}\n"
    readable = demangle(name)
    if readable != name:
        yield f"{'':16}{printable(readable)}\n"


def first_callers(placed: Placed) -> dict[int, int]:
    """By function, the first live function that calls it."""
    merged = placed.merged
    callers: dict[int, int] = {}
    live = [bool(row[3] & LIVE) for row in rows(merged.entities, ENTITY)]
    for caller, callee, block, won in rows(merged.calls, CALL):
        if block == DIRECT_CALL and won and live[caller] and caller != callee:
            callers.setdefault(callee, caller)
    return callers


def _kept_because(
    placed: Placed, number: int, row: tuple[int, ...], callers: dict[int, int]
) -> str:
    merged = placed.merged
    objects = merged.objects
    if row[3] & KERNEL:
        return "kernel"
    if row[2] != FUNCTION_KIND:
        return "variable"
    if number in callers:
        caller = ENTITY.unpack_from(merged.entities, callers[number] * ENTITY.size)
        return f"called by {printable(symbol_name(objects.arena, objects.symbols, caller[0]))}"
    return "its address is taken" if row[3] & TAKEN else "all code is kept"


def removed_lines(placed: Placed) -> Iterator[str]:
    """The definitions of inputs that the output does not have, with the reason for each."""
    merged = placed.merged
    objects = merged.objects
    entities = list(rows(merged.entities, ENTITY))
    yield f"{'Size':>12}  Removed symbols\n"
    numbers = iter_unpack("<i", merged.symbol_entity)
    for symbol, ((entity,), role) in enumerate(zip(numbers, merged.symbol_role, strict=True)):
        if entity < 0 or not role:
            continue
        row = entities[entity]
        if role in (LOST, REPLACED):
            winner = printable(objects.names[symbol_file(objects.symbols, row[1])])
            reason = f"the definition in {winner} is linked"
        elif not row[3] & LIVE:
            reason = _removed_because(row)
        else:
            continue
        yield from symbol_lines(objects, symbol, reason)


def _removed_because(row: tuple[int, ...]) -> str:
    if row[3] & KERNEL:
        return "the kernel is not selected"
    if row[3] & DESELECTED:
        return "only kernels that are not selected reach it"
    return "no kernel reaches it"
