"""Phase report, with -v: prints the memory of the link and the resources of every kernel."""

from __future__ import annotations

from pylink._native import report
from pylink.facts.target import CONSTANT_BANK, CONSTANT_LIMIT, FAMILY_C, SYSTEM_SHARED
from pylink.tables import entity_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.phases.results import Placed


def report_use(sink: Sink, placed: Placed) -> None:
    """Print the memory of the whole link, then two messages for each kernel, last created first."""
    merged = placed.merged
    objects = merged.objects
    options = objects.job.options
    reserves_shared = objects.job.executable and not options.disable_smem_reservation
    has_mercury = objects.job.target.family == FAMILY_C
    global_size, banks = report.sum_memory(placed.outs)
    if any(bank == CONSTANT_BANK and size > CONSTANT_LIMIT for bank, size in banks):
        from pylink.phases.report_memory import needed_constants

        banks = [
            (
                bank,
                needed_constants(placed, size, CONSTANT_LIMIT) if bank == CONSTANT_BANK else size,
            )
            for bank, size in banks
        ]
    sink.report(
        "verbose-memory",
        sizes=_list_sizes([f"{global_size} bytes gmem"], banks, has_mercury=has_mercury),
    )
    for use in report.list_kernel_use(placed):
        name = entity_name(merged, use.entity)
        shared_size = use.shared
        if has_mercury and reserves_shared:
            shared_size = max(0, shared_size - SYSTEM_SHARED)
        sink.report("verbose-function", symbol=name)
        sink.report(
            "verbose-usage",
            registers=use.registers,
            barriers=use.barriers,
            stack=use.stack,
            memory=_list_sizes([f"{shared_size} bytes smem"], use.banks, has_mercury=has_mercury),
            lmem=0,
        )


def _list_sizes(parts: list[str], banks: list[tuple[int, int]], *, has_mercury: bool) -> str:
    """Join sizes with commas; from sm_100 on without the constant banks."""
    if not has_mercury:
        parts += [f"{size} bytes cmem[{bank}]" for bank, size in banks]
    return ", ".join(parts)
