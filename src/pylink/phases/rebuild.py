"""Part of merge from sm_100 on: plain debug sections written anew instead of concatenated."""

from __future__ import annotations

from pylink._native import debug, rebuild
from pylink._native.tables import Spans
from pylink.facts.releases import TRAIT_ENDS_LINES
from pylink.tables import REPLACED, section_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.phases.results import Merged

LINES = (b".debug_line", b".nv_debug_line_sass")
FRAME = b".debug_frame"
REGISTERS = b".nv_debug_info_reg_sass"


def rebuild_debug(merged: Merged, sink: Sink) -> None:
    """Rebuild what there is; `merged` is still under construction."""
    results: list[tuple[int, bytes, bytes, int]] = []
    retargets: list[tuple[bytes, bytes, int]] = []
    for name in (*LINES, FRAME, REGISTERS):
        _rebuild_one(merged, name, results, retargets, sink)
    if not results:
        return
    rebuild.adopt(merged, results)
    for inputs, units, out in retargets:
        rebuild.retarget(merged, inputs, units, out)


def _rebuild_one(
    merged: Merged,
    name: bytes,
    results: list[tuple[int, bytes, bytes, int]],
    retargets: list[tuple[bytes, bytes, int]],
    sink: Sink,
) -> None:
    objects = merged.objects
    arena = objects.arena
    out = rebuild.find_debug(merged, name)
    if out < 0:
        return
    pieces, relocations, numbers, inputs = rebuild.pieces_of(merged, out)
    moved = b""
    try:
        if name in LINES:
            headers, patches = rebuild.headers_of(merged, out)
            ended = objects.traits & TRAIT_ENDS_LINES != 0
            contents, moved, units = debug.rebuild_line(
                arena, pieces, relocations, headers, patches, ended
            )
            retargets.append((inputs, units, out))
        elif name == FRAME:
            contents, moved = debug.rebuild_frame(arena, pieces, relocations)
            if REPLACED in merged.symbol_resolution.data:
                from pylink.phases.rebuild_copies import merge_frames

                contents, moved = merge_frames(merged, contents, moved, numbers)
        else:
            contents = debug.rebuild_reg_sass(arena, pieces, rebuild.live_names(merged))
    except debug.MalformedDebugSection as fault:
        piece = inputs[4 * fault.piece : 4 * fault.piece + 4]
        section = int.from_bytes(piece, "little", signed=True)
        sink.report(
            "debug-format",
            file=objects.names[objects.sections[section].file],
            section=section_name(objects, section),
            offset=fault.offset,
            reason=str(fault),
        )
        return
    results.append((out, numbers, moved, len(contents)))
    merged.made.append((contents, Spans.whole(out, len(contents))))
