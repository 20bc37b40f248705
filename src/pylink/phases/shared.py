"""Part of layout: shared memory, where a variable has a place in each kernel that uses it."""

from __future__ import annotations

from struct import Struct, unpack

from pylink._native import shared, sharedmap
from pylink.tables import ENTITY, FUNCTION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.phases.layout import Placed
    from pylink.phases.merge import Merged


# Rows of `gather_shared`: size, alignment, owner, flags; variable, kernel.
_VARIABLE = Struct("<QQiI")
_USE = Struct("<II")


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
            from pylink.phases.report_memory import report_shared  # noqa: PLC0415 -- an error

            def shares(kernel: int) -> list[tuple[int, int]]:
                return _shares(merged, variables, uses, variable_entities, kernel_entities, kernel)

            report_shared(merged, oversized, shares, limit, sink)
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


def _shares(
    merged: Merged,
    variables: bytes,
    uses: bytes,
    variable_entities: bytes,
    kernel_entities: bytes,
    kernel: int,
) -> list[tuple[int, int]]:
    """The variables of one kernel, in the tables of `gather_shared`: symbol row and bytes each."""
    number = unpack(f"<{len(kernel_entities) // 4}i", kernel_entities).index(kernel)
    entities = unpack(f"<{len(variable_entities) // 4}i", variable_entities)
    own = [
        row
        for row, (*_, owner, _) in enumerate(_VARIABLE.iter_unpack(variables))
        if owner == number
    ]
    used = [variable for variable, user in _USE.iter_unpack(uses) if user == number]
    return [
        (
            ENTITY.unpack_from(merged.entities, entities[variable] * ENTITY.size)[1],
            _VARIABLE.unpack_from(variables, variable * _VARIABLE.size)[0],
        )
        for variable in dict.fromkeys(own + used)
    ]
