"""Pass dce: which functions were removed, which were kept although unreachable, and why.

For functions that match --pass-remarks-why-live, it also emits the calls by which a kernel reaches
them.
"""

from __future__ import annotations

from pylink.facts.rownumbers import EntityFlag, EntityKind, LinkMode
from pylink.phases.report_removed import why_removed
from pylink.remarks.passes.catalogue import (
    FUNCTION_KEPT,
    FUNCTION_REACHED,
    FUNCTION_REMOVED,
    KERNEL_REMOVED,
    At,
)
from pylink.remarks.passes.graph import CallGraph, chain
from pylink.remarks.passes.view import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.options.model import Options
    from pylink.phases.results import Merged
    from pylink.remarks import Remarks


def emit(merged: Merged, remarks: Remarks) -> None:
    """Emit remarks on removed functions, on kept unreachable ones, and on those of `why_live`."""
    view = View(merged)
    graph = CallGraph(merged)
    roots = [
        number
        for number, flags in enumerate(merged.entities.column("flags"))
        if flags & EntityFlag.KERNEL and flags & EntityFlag.LIVE
    ]
    reached = graph.reach(roots)
    job = merged.objects.job
    why_live = remarks.why_live
    keep_reason = (
        _reason_to_keep_all(job.options)
        if job.mode & LinkMode.KEEP_CODE
        else "its address is taken"
    )
    for number, row in enumerate(merged.entities):
        size = row.size
        if row.kind != EntityKind.FUNC or not row.flags & EntityFlag.DEFINED:
            continue
        if not row.flags & EntityFlag.LIVE:
            _emit_removed(view, remarks, number, row.flags, size)
        elif number not in reached:
            place = view.at_symbol(row.winner)
            remarks.emit(
                FUNCTION_KEPT(view.name(number), place, size, CodeBytes=size, Reason=keep_reason)
            )
        elif why_live is not None and why_live.search(view.name(number)):
            _emit_reached(view, remarks, number, size, graph, reached)


def _reason_to_keep_all(options: Options) -> str:
    """Return, as text, which option makes the link keep all functions."""
    if options.relocatable_link:
        return "-r removes nothing"
    if options.link_as_tools_patch:
        return "--link-as-tools-patch removes nothing"
    return "-g removes nothing" if options.debug else "--preserve-relocs removes nothing"


def _emit_removed(view: View, remarks: Remarks, number: int, flags: int, size: int) -> None:
    """Emit the remark of a function or kernel that dead-code elimination removed.

    `number`, `flags` (EntityFlag bits) and `size` are those of its row in the table of entities.
    """
    place = view.at_entity(number)
    reason = why_removed(view.merged.objects, flags)
    kind = KERNEL_REMOVED if flags & EntityFlag.KERNEL else FUNCTION_REMOVED
    remarks.emit(kind(view.name(number), place, size, CodeBytes=size, Reason=reason))


def _emit_reached(
    view: View, remarks: Remarks, number: int, size: int, graph: CallGraph, reached: dict[int, int]
) -> None:
    """Emit why the entity `number`, a function with `size` bytes of code, is kept.

    `reached` is the result of `graph.reach` for all live kernels.
    """
    steps = graph.path_to(reached, number)
    root = steps[0][0]
    remarks.emit(
        FUNCTION_REACHED(
            view.name(number),
            view.at_entity(number),
            size,
            Root=At(view.name(root), view.at_entity(root)),
            Chain=chain(steps, view.name),
        )
    )
