"""Part of layout: shared memory, where a variable has a place in each kernel that uses it."""

from __future__ import annotations

from pylink._native import shared, sharedmap
from pylink.tables import FUNCTION, entity_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.phases.layout import Placed
    from pylink.phases.merge import Merged


def gather_shared(merged: Merged) -> tuple[bytes, bytes, bytes, bytes, bytes]:
    """Which kernel uses which shared variable, as `sharedmap.gather` tells it."""
    objects = merged.objects
    return sharedmap.gather(
        objects.sections,
        objects.symbols,
        merged.entities,
        merged.symbol_entity,
        merged.calls,
        merged.prototypes,
        merged.fixes,
        merged.outs,
        merged.referenced,
        merged.uses_array,
        objects.job.debug,
        objects.job.executable,
    )


def place_shared(placed: Placed, sink: Sink) -> None:
    """Offsets of shared variables and sizes of .nv.shared sections."""
    merged = placed.merged
    objects = merged.objects
    job = objects.job
    keeps_symbols = job.debug or job.options.preserve_relocs
    variables, uses, extern_uses, variable_entities, kernel_entities = gather_shared(merged)
    kernel_count = len(kernel_entities) // 4
    tie_count = len(merged.functions) // FUNCTION.size
    offsets = b""
    if job.executable:
        offsets, kernels, ties = shared.layout_shared(
            job.target.family,
            kernel_count,
            tie_count,
            variables,
            uses,
            extern_uses,
            keeps_symbols,
        )
        limit = job.target.shared_limit
        oversized = sharedmap.find_oversized(kernel_entities, kernels, limit, job.target.family)
        if oversized:
            _report_oversized(merged, oversized, limit, sink)
    else:
        kernels, ties = shared.layout_relocatable(kernel_count, tie_count, variables, extern_uses)
    (
        placed.values,
        placed.symbol_values,
        placed.merc_values,
        placed.homes,
        placed.outs,
        placed.dynamic,
        placed.lost,
    ) = sharedmap.apply(
        objects.sections,
        objects.symbols,
        merged.entities,
        merged.symbol_entity,
        placed.outs,
        placed.values,
        placed.homes,
        variable_entities,
        kernel_entities,
        offsets,
        kernels,
        ties,
        uses,
        job.executable,
        keeps_symbols,
        job.target.family,
    )


def _report_oversized(
    merged: Merged, oversized: list[tuple[int, int]], limit: int, sink: Sink
) -> None:
    from pylink.phases.report_symbols import explain_entity  # noqa: PLC0415 -- errors

    objects = merged.objects
    for kernel, size in oversized:
        sink.report(
            "too-much-memory",
            explain=explain_entity(merged, kernel),
            symbol=entity_name(objects.arena, objects.symbols, merged.entities, kernel),
            space="shared",
            size=size,
            limit=limit,
        )
