"""Sections of shared memory that stay in the order reference.

This depends on the layout of shared memory (docs/format-notes/shared-memory.md), of which only an
outline is here: a section stays if it gets variables, or room for an extern array.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from helpers.order.lists import Symbol
from helpers.order.reader import SECTION, Mention

if TYPE_CHECKING:
    from helpers.order.ending import Ending

ARRAY_ALIGN = 16


def choose_shared(link: Ending) -> None:
    """Decide which of `.nv.shared.K` and `.nv_debug.shared` are written."""
    uses = _uses(link)
    kernels = link.live_kernels()
    reach = {kernel: link.reach(kernel) for kernel in kernels}
    reached = {k: {v for y in reach[k] for v in uses.get(y, ())} for k in kernels}
    loose = _loose(link)
    common = {
        v
        for v in loose
        if sum(v in reached[k] for k in kernels) != 1
        and (link.relocatable or any(v in names for names in uses.values()))
    }
    aligned = common or link.relocatable
    align = max([v.current.value for v in loose] + [1]) if aligned else 1
    has_array = any(
        m.symbol is not None and not m.size and link.space(m) == "shared" for m in _mentions(link)
    )
    for symbol in link.functions:
        if symbol.shared is not None and not symbol.live:
            symbol.shared.is_written = False  # dead kernels leave the name
    variables_of: dict[Symbol, list[Mention]] = {kernel: [] for kernel in kernels}
    for mention in _mentions(link):
        part = mention.part
        if part is not None and part.kind == "shared" and mention.type != SECTION and part.owner:
            variables_of.setdefault(part.owner.output_symbol, []).append(mention)
    full, kernel_align = {}, {}
    for kernel in kernels:
        values = [m.value for m in variables_of[kernel]]
        if not link.relocatable:
            values += [v.current.value for v in reached[kernel] if v in loose]
            names_array = any(not v.current.size for v in reached[kernel])
        else:
            names_array = kernel.uses_array
        full[kernel] = bool(values)
        kernel_align[kernel] = max([*values, align] + [ARRAY_ALIGN] * names_array)
    arrays = {k: _arrays_of_functions(reach[k], uses) for k in kernels}
    reserves = link.family == "B" and not link.relocatable  # then no section is empty
    for kernel in kernels:
        if kernel.shared is None:
            continue
        # An array of a device function lies after the variables of all its users.
        behind = not link.relocatable and any(
            full[k] and arrays[kernel] & arrays[k] for k in kernels
        )
        has_room = full[kernel] or behind
        room = kernel_align[kernel]
        kernel.shared.is_written = has_room or (
            has_array and (room == ARRAY_ALIGN or (reserves and room > ARRAY_ALIGN))
        )
        kernel.shared.bare = not (has_room or reserves)
    section = link.lists.find_section_of_files(".nv_debug.shared")
    if section is not None:
        has_variables = link.relocatable and bool(loose)
        small = max(align, ARRAY_ALIGN) == ARRAY_ALIGN if link.relocatable else align <= ARRAY_ALIGN
        section.is_written = has_variables or (has_array and small)
        section.bare = not has_variables


def _mentions(link: Ending) -> Iterable[Mention]:
    """Return all symbols of all inputs."""
    return (mention for file in link.files for mention in file.mentions)


def _uses(link: Ending) -> dict[Symbol, set[Symbol]]:
    """Return, by function, the shared variables that the code of its current copy names."""
    uses: dict[Symbol, set[Symbol]] = {}
    for file in link.files:
        for part in file.parts:
            owner = file.parts[part.info].owner if part.kind == "relocations" else None
            if owner is None or file.parts[part.info].kind != "text":
                continue
            if owner.output_symbol.copy is not owner:
                continue
            for entry in file.entries(part):
                symbol = file.mentions[entry.symbol].symbol
                if symbol is not None and link.space(symbol.current) == "shared":
                    uses.setdefault(owner.output_symbol, set()).add(symbol)
    return uses


def _loose(link: Ending) -> set[Symbol]:
    """Return shared variables that belong to no kernel."""
    return {
        m.symbol
        for m in _mentions(link)
        if m.symbol is not None
        and m.symbol.copy is m
        and m.size
        and m.part is not None
        and m.part.kind == "common shared"
    }


def _arrays_of_functions(reach: set[Symbol], uses: dict[Symbol, set[Symbol]]) -> set[Symbol]:
    """Return the extern arrays that device functions in `reach` use."""
    return {v for y in reach if not y.is_kernel for v in uses.get(y, ()) if not v.current.size}
