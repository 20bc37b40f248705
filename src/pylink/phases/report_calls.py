"""Part of layout: prints the call graph, and reports calls that need too many registers."""

from __future__ import annotations

from pylink._native import report
from pylink.facts.rownumbers import EntityFlag, KeepsFlag
from pylink.phases.report_symbols import explain_entity
from pylink.tables import entity_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Diagnostic, Sink
    from pylink.phases.results import Merged

# Lines of nvlink in front of the call graph.
LEGEND = (
    "# A: s -> B // s (number A) potentially calls B",
    "# s [N]     // s uses N registers",
    "# ^s        // s is entry point",
    "# &s        // s has address taken",
)


def report_registers(merged: Merged, sink: Sink, *, dump: bool) -> None:
    """Report functions that need more registers than a kernel which reaches them may have.

    With `dump` print all register counts that propagate to kernels.
    """
    for row in report.list_propagations(merged):
        if row.registers > row.limit:
            sink.report(
                "too-many-registers",
                hints=[_note_chain(merged, row.kernel, row.function, row.limit)],
                explain=explain_entity(merged, row.kernel, callee=row.function),
                symbol=entity_name(merged, row.kernel),
                limit=row.limit,
                callee=entity_name(merged, row.function),
                registers=row.registers,
            )
        if dump:
            sink.report(
                "call-graph",
                line=f"regcount {row.registers} for {_demangled_name(merged, row.function)} "
                f"propagated to entry {_demangled_name(merged, row.kernel)}",
            )


def _note_chain(merged: Merged, kernel: int, function: int, limit: int) -> Diagnostic:
    """Return a note with the shortest chain of calls from a kernel to a function.

    It also says where the kernel's `limit` of registers comes from.
    """
    from pylink.diagnostics.record import note
    from pylink.locate.calls import call_edges, shortest_chain
    from pylink.locate.registers import limit_cause

    nodes = shortest_chain(call_edges(merged), kernel, function)
    entity_count = len(merged.entities)  # further nodes are prototypes of indirect calls
    names = [
        _demangled_name(merged, node) if node < entity_count else "a pointer" for node in nodes
    ]
    cause = limit_cause(merged, kernel, limit)
    return note("register-chain", chain=" -> ".join(names), limit=limit, cause=cause)


def report_graph(merged: Merged, sink: Sink) -> None:
    """Print the call graph, a line for each function.

    As in nvlink, -dump-callgraph and -dump-callgraph-no-demangle both print demangled names.
    """
    lines = [f"callgraph for sm_{merged.objects.job.target.sm}:", *LEGEND]
    functions = report.list_calls(merged)
    for number, function in enumerate(functions, 1):
        flags = merged.entities[function.entity].flags
        keeps = merged.functions[function.entity].keeps
        if not flags & EntityFlag.LIVE:
            lines.append(f"{number}: ")
            continue
        marks = "^" if flags & EntityFlag.KERNEL and not keeps & KeepsFlag.ALL else ""
        marks += "&" if flags & EntityFlag.TAKEN else ""
        registers = f" [{function.registers}]" if function.registers >= 0 else ""
        calls = "".join(f" {callee}" for callee in function.callees)
        name = _demangled_name(merged, function.entity)
        lines.append(f"{number}: {marks}{name}{registers} ->{calls}")
    for line in lines:
        sink.report("call-graph", line=line)


def _demangled_name(merged: Merged, entity: int) -> str:
    from pylink.demangle import demangle

    return demangle(entity_name(merged, entity))
