"""Part of merge from sm_100 on: rewrites plain (not mercury) line tables, frames and register data.

All other debug sections are the inputs' contents, one after the other.
"""

from __future__ import annotations

from pylink._native import debug, rebuild
from pylink._native.tables import Blob, Spans
from pylink.facts.releases import TRAIT_ENDS_LINES
from pylink.facts.rownumbers import Resolution
from pylink.phases.sidebyside import map_in_link
from pylink.tables import section_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink._native.debug import Contents, LineUnits, Moved
    from pylink._native.rebuild import PieceSections, RebuildNumbers, RebuiltSection
    from pylink.diagnostics import Sink
    from pylink.phases.results import Merged

    # The number of the input section, the offset in it, and the reason.
    Fault = tuple[int, int, str]

LINES = (b".debug_line", b".nv_debug_line_sass")
FRAME = b".debug_frame"
REGISTERS = b".nv_debug_info_reg_sass"


class Rebuilt:
    """A debug section made anew: `out` is its row number among the output sections.

    `numbers` has the number in `merged.rebuilds` of each of its relocations, and `moved` the new
    offsets of those that stay. `inputs` are the numbers of the input sections. `units`, for a
    section of lines only, has the old and new offsets of the inputs' line tables, for
    `rebuild.retarget_units`.
    """

    __slots__ = ("contents", "inputs", "moved", "numbers", "out", "units")

    def __init__(self, out: int, numbers: RebuildNumbers, inputs: PieceSections) -> None:
        self.out = out
        self.numbers = numbers
        self.inputs = inputs
        self.moved: Moved = Blob()
        self.contents: Contents = Blob()
        self.units: LineUnits | None = None


def rebuild_debug(merged: Merged, sink: Sink) -> None:
    """Rebuild the debug sections of `merged`, which is still under construction.

    No section depends on another one, so they are rebuilt side by side.
    """
    results: list[RebuiltSection] = []
    retargets: list[tuple[PieceSections, LineUnits, int]] = []
    names = (FRAME, *LINES, REGISTERS)  # the section that takes longest comes first
    rebuilt = map_in_link(
        lambda name: _rebuild_section(merged, name), names, len(merged.objects.arena)
    )
    sections = dict(zip(names, rebuilt, strict=True))
    for name in (*LINES, FRAME, REGISTERS):
        section = sections[name]
        if section is None:
            continue
        if not isinstance(section, Rebuilt):
            _report_fault(merged, section, sink)
            continue
        if section.units is not None:
            retargets.append((section.inputs, section.units, section.out))
        results.append((section.out, section.numbers, section.moved, len(section.contents)))
        merged.replacements.append(
            (section.contents, Spans.whole(section.out, len(section.contents)))
        )
    if not results:
        return
    rebuild.adopt_sections(merged, results)
    for inputs, units, out in retargets:
        rebuild.retarget_units(merged, inputs, units, out)


def _rebuild_section(merged: Merged, name: bytes) -> Rebuilt | Fault | None:
    """Rebuild the debug section `name`; return the fault if an input is damaged.

    None if the output has no such section.
    """
    objects = merged.objects
    arena = objects.arena
    debug_section = rebuild.find_debug_section(merged, name)
    if debug_section < 0:
        return None
    pieces, relocations, numbers, inputs = rebuild.list_debug_pieces(merged, debug_section)
    rebuilt = Rebuilt(debug_section, numbers, inputs)
    try:
        if name in LINES:
            headers, patches = rebuild.list_header_patches(merged, debug_section)
            ends_lines = objects.traits & TRAIT_ENDS_LINES != 0
            rebuilt.contents, rebuilt.moved, rebuilt.units = debug.rebuild_line(
                arena, pieces, relocations, headers, patches, ended=ends_lines
            )
        elif name == FRAME:
            rebuilt.contents, rebuilt.moved = debug.rebuild_frame(arena, pieces, relocations)
            if Resolution.REPLACED in merged.symbol_resolution.data:
                from pylink.phases.rebuild_copies import merge_frames

                rebuilt.contents, rebuilt.moved = merge_frames(
                    merged, rebuilt.contents, rebuilt.moved, numbers
                )
        else:
            rebuilt.contents = debug.rebuild_reg_sass(
                arena, pieces, rebuild.list_live_names(merged)
            )
    except debug.MalformedDebugSection as fault:
        return inputs[fault.piece], fault.offset, str(fault)
    return rebuilt


def _report_fault(merged: Merged, fault: Fault, sink: Sink) -> None:
    """Report damage in the debug data of an input."""
    objects = merged.objects
    section, offset, reason = fault
    sink.report(
        "debug-format",
        file=objects.names[objects.sections[section].file],
        section=section_name(objects, section),
        offset=offset,
        reason=reason,
    )
