"""Pass regcount: which function raised the register count of a kernel, and by which calls."""

from __future__ import annotations

from pylink._native import functions as native_functions
from pylink._native import report
from pylink.facts.rownumbers import EntityFlag
from pylink.remarks.passes.catalogue import KERNEL_RAISED, TOO_MANY_REGISTERS, At
from pylink.remarks.passes.graph import CallGraph, chain
from pylink.remarks.passes.view import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.results import Merged
    from pylink.remarks import Remarks

REGISTER_BYTES = 4  # size of one register of a thread


def emit(merged: Merged, remarks: Remarks) -> None:
    """Emit remarks on kernels whose register count is that of a function that they reach.

    None for a relocatable link.
    """
    if not merged.objects.job.executable:
        return
    view = View(merged)
    graph: CallGraph | None = None
    # By entity: the function whose register count it takes over (a kernel) or passes on, or -1.
    raised_by = merged.functions.column("raised_by")
    for kernel, entity in enumerate(merged.entities):
        source = raised_by[kernel]
        if source < 0 or not (entity.flags & EntityFlag.KERNEL and entity.flags & EntityFlag.LIVE):
            continue
        registers, own_registers = merged.functions[kernel].regcount, entity.regcount
        graph = graph or CallGraph(merged)
        steps = graph.find_path_raised_by(kernel, source, raised_by)
        remarks.emit(
            KERNEL_RAISED(
                view.name(kernel),
                view.at_entity(kernel),
                (registers - own_registers) * REGISTER_BYTES,
                Own=own_registers,
                Registers=registers,
                Callee=At(view.name(source), view.at_entity(source)),
                Chain=chain(steps, view.name),
            )
        )
    _emit_limits(merged, remarks, view)


def _emit_limits(merged: Merged, remarks: Remarks, view: View) -> None:
    """Emit remarks on kernels that reach a function with more registers than the kernel may have.

    Such a link fails.
    """
    _, exceeds_registers = native_functions.find_recursive(merged)
    if not exceeds_registers:
        return
    for row in report.list_propagations(merged):
        if row.registers > row.limit:
            remarks.emit(
                TOO_MANY_REGISTERS(
                    view.name(row.kernel),
                    view.at_entity(row.kernel),
                    (row.registers - row.limit) * REGISTER_BYTES,
                    Callee=At(view.name(row.function), view.at_entity(row.function)),
                    Registers=row.registers,
                    Limit=row.limit,
                )
            )
