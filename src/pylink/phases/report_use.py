"""Phase report, with -v: the memory of the link and the resources of every kernel."""

from __future__ import annotations

from pylink._native import report
from pylink.facts.target import FAMILY_C, SYSTEM_SHARED
from pylink.tables import entity_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.phases.results import Placed


def report_use(placed: Placed, sink: Sink) -> None:
    """Memory of the whole link, then two lines for each kernel, last born first."""
    merged = placed.merged
    objects = merged.objects
    executable = objects.job.executable
    mercury = objects.job.target.family == FAMILY_C
    total, banks = report.memory_use(placed.outs)
    sink.report("verbose-memory", sizes=_listed([f"{total} bytes gmem"], banks, mercury))
    for entity, registers, barriers, stack, shared, own in report.kernel_use(placed):
        name = entity_name(merged, entity)
        counted = max(0, shared - SYSTEM_SHARED) if mercury and executable else shared
        sink.report("verbose-function", symbol=name)
        sink.report(
            "verbose-usage",
            registers=registers,
            barriers=barriers,
            stack=stack,
            memory=_listed([f"{counted} bytes smem"], own, mercury),
            lmem=0,
        )


def _listed(parts: list[str], banks: list[tuple[int, int]], mercury: bool) -> str:
    """Sizes between commas; from sm_100 on without the constant banks."""
    if not mercury:
        parts += [f"{size} bytes cmem[{bank}]" for bank, size in banks]
    return ", ".join(parts)
