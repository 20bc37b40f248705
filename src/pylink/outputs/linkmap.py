"""--Map: the inputs of each output section, and why symbols were kept or removed."""

from __future__ import annotations

from collections import defaultdict

from pylink.demangle import demangle
from pylink.diagnostics.stream import printable
from pylink.facts.elf import SHN_COMMON, SHT_NOBITS
from pylink.facts.rownumbers import CallBlock, ContentsFrom, EntityFlag, EntityKind, Resolution
from pylink.files.atomic import write_text
from pylink.observer import Observer
from pylink.phases.report_removed import why_removed
from pylink.phases.results import Placed
from pylink.tables import section_name, string, symbol_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylink.diagnostics import Sink
    from pylink.phases.results import Objects
    from pylink.rows import EntityRow

STANDARD_OUTPUT = "-"  # the file name that stands for standard output


class MapObserver(Observer):
    """Writes the map of a successful link."""

    __slots__ = ("_file", "_placed", "_sink")

    needs_cubins = True

    def __init__(self, file: str, sink: Sink) -> None:
        self._file = file
        self._sink = sink
        self._placed: Placed | None = None

    def phase_ended(self, tag: str, result: object) -> None:
        if tag == "layout":
            assert isinstance(result, Placed)
            self._placed = result

    def close(self, *, failed: bool) -> None:
        if failed or self._placed is None:
            return
        text = "".join(map_lines(self._placed))
        write_text(None if self._file == STANDARD_OUTPUT else self._file, text, self._sink)


def map_lines(placed: Placed) -> Iterator[str]:
    """Yield the lines of the map: sections in file order, symbols kept, symbols removed.

    The first line names the linker that the output follows.
    """
    yield f"Follows {placed.merged.objects.release.title}\n\n"
    yield from _section_lines(placed)
    yield "\n"
    yield from _kept_lines(placed)
    yield "\n"
    yield from _removed_lines(placed)


def _section_lines(placed: Placed) -> Iterator[str]:
    """Yield a line per output section, followed by one per input section in it.

    A cubin has no addresses before it is loaded: `Address` is sh_addr, 0 in all sections. Input
    sections are listed with their offset in the output section, or with "-" if the linker makes the
    bytes of the output section. An output section without inputs is created by the linker.
    """
    merged = placed.merged
    objects = merged.objects
    # By output section: offset in it, and number, of each of its input sections.
    contributions = defaultdict(list)
    for number, (out_number, offset_in_output) in enumerate(
        zip(merged.out_of, merged.base, strict=True)
    ):
        if out_number >= 0:
            contributions[out_number].append((offset_in_output, number))
    yield f"{'Offset':>12} {'Address':>8} {'Size':>12} {'Align':>6}  Section\n"
    for out_number in placed.section_order:
        out_place, row = placed.places[out_number], placed.outs[out_number]
        title = printable(string(placed.shstrtab, out_place.name))
        size = row.size if row.type == SHT_NOBITS else out_place.size
        yield f"{out_place.offset:#12x} {0:#8x} {size:#12x} {max(row.align, 1):6}  {title}\n"
        for offset_in_output, number in sorted(contributions[out_number]):
            section = objects.sections[number]
            file = printable(objects.names[section.file])
            input_name = printable(section_name(objects, number))
            start_text = (
                "-" if out_place.contents == ContentsFrom.SPAN else f"{offset_in_output:#x}"
            )
            sizes_text = f"{section.size:#12x} {section.align:6}"
            yield f"{start_text:>12} {'':8} {sizes_text}      {file}:({input_name})\n"


def _kept_lines(placed: Placed) -> Iterator[str]:
    """Yield the lines of symbols that inputs define and the output has, with the reason."""
    merged = placed.merged
    objects = merged.objects
    callers = _first_callers(placed)
    yield f"{'Size':>12}  Kept symbols\n"
    for number, row in enumerate(merged.entities):
        if row.flags & EntityFlag.DEFINED and row.flags & EntityFlag.LIVE:
            reason = _kept_because(placed, number, row, callers)
            # A common symbol has the size of the largest of its definitions.
            winner = objects.symbols[row.winner]
            size = row.size if winner.shndx == SHN_COMMON else winner.size
            yield from _symbol_lines(objects, row.winner, size, reason)


def _symbol_lines(objects: Objects, symbol: int, size: int, reason: str) -> Iterator[str]:
    """Yield a line with size, name, file and reason; then one with the demangled name, if any."""
    row = objects.symbols[symbol]
    name = symbol_name(objects, symbol)
    yield f"{size:#12x}  {printable(name)}  {printable(objects.names[row.file])}: {reason}\n"
    demangled = demangle(name)
    if demangled != name:
        yield f"{'':16}{printable(demangled)}\n"


def _first_callers(placed: Placed) -> dict[int, int]:
    """Map functions to the first live function, except themselves, that calls them directly.

    Functions are rows of `entities`. Those without such a caller are omitted.
    """
    merged = placed.merged
    callers: dict[int, int] = {}
    live = [flags & EntityFlag.LIVE for flags in merged.entities.column("flags")]
    for call in merged.calls:
        if call.block != CallBlock.DIRECT or not call.of_linked_copy or not live[call.caller]:
            continue
        if call.caller != call.callee:
            callers.setdefault(call.callee, call.caller)
    return callers


def _kept_because(placed: Placed, number: int, row: EntityRow, callers: dict[int, int]) -> str:
    """Return why a symbol is in the output: row `number` of `entities`, which is `row`.

    `callers` is the result of `_first_callers`.
    """
    merged = placed.merged
    objects = merged.objects
    if row.flags & EntityFlag.KERNEL:
        return "kernel"
    if row.kind != EntityKind.FUNC:
        return "variable"
    if number in callers:
        caller = merged.entities[callers[number]]
        return f"called by {printable(symbol_name(objects, caller.first))}"
    return "its address is taken" if row.flags & EntityFlag.TAKEN else "all code is kept"


def _removed_lines(placed: Placed) -> Iterator[str]:
    """Yield the lines of definitions that the output does not have, with the reason."""
    merged = placed.merged
    objects = merged.objects
    yield f"{'Size':>12}  Removed symbols\n"
    table = zip(merged.symbol_entity, merged.symbol_resolution, strict=True)
    for symbol, (entity, resolution) in enumerate(table):
        if entity < 0 or not resolution:
            continue
        row = merged.entities[entity]
        if resolution in (Resolution.LOST, Resolution.LOST_EARLY, Resolution.REPLACED):
            winner = objects.symbols[row.winner]
            file = printable(objects.names[winner.file])
            both_common = objects.symbols[symbol].shndx == winner.shndx == SHN_COMMON
            reason = (
                f"merged with that of {file}"
                if both_common
                else f"the definition in {file} is linked"
            )
        elif not row.flags & EntityFlag.LIVE:
            reason = why_removed(objects, row.flags)
        else:
            continue
        yield from _symbol_lines(objects, symbol, objects.symbols[symbol].size, reason)
