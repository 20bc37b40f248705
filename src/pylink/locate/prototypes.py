"""Finds the prototypes of functions in files.

A prototype is a string with a letter for the register class of the result and of each parameter. A
row of .nv.prototype, or of block TAKEN of .nv.callgraph, has the number of a function's symbol and
the offset of the prototype in .strtab. In .nv.callgraph, a row with symbol 0 begins a block: its
second number is a `CallBlock`, which says what the following rows mean.
"""

from __future__ import annotations

from struct import iter_unpack

from pylink.facts.rownumbers import CallBlock
from pylink.tables import file_sections, section_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.results import Merged


def prototype_of(merged: Merged, symbol: int) -> str | None:
    """Return the prototype of a symbol row in its file; None if not found."""
    objects = merged.objects
    file = objects.files[objects.symbols[symbol].file]
    index = symbol - file.first_symbol
    prototype = None  # the last one counts
    for section in file_sections(objects, objects.symbols[symbol].file):
        name = section_name(objects, section)
        if name not in (".nv.callgraph", ".nv.prototype"):
            continue
        row = objects.sections[section]
        block = CallBlock.TAKEN if name == ".nv.prototype" else 0
        data = objects.arena[row.offset : row.offset + row.size // 8 * 8]
        for first, second in iter_unpack("<Ii", data):
            if first == 0 and name == ".nv.callgraph":
                block = second
            elif first == index and block == CallBlock.TAKEN:
                start = file.strtab + second
                text = objects.arena[start : objects.arena.index(0, start)]
                prototype = text.decode("utf-8", "surrogateescape")
    return prototype


def earlier_prototype(merged: Merged, symbol: int) -> tuple[int, str] | None:
    """Return the symbol row of the same function in an earlier file, and its prototype.

    It is the last such file that has a prototype of the function; None without one.
    """
    objects = merged.objects
    entity = merged.symbol_entity[symbol]
    end = objects.files[objects.symbols[symbol].file].first_symbol
    same_name = [
        row for row, number in enumerate(merged.symbol_entity) if number == entity and row < end
    ]
    for row in reversed(same_name):
        prototype = prototype_of(merged, row)
        if prototype is not None:
            return row, prototype
    return None
