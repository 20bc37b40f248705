"""Part of layout: shared memory, where a variable has a place in each kernel that uses it."""

from __future__ import annotations

from pylink._native import shared, sharedmap
from pylink.facts.releases import TRAIT_ALIGNS_ARRAYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink._native.tables import SharedTables
    from pylink.diagnostics import Sink
    from pylink.phases.results import Merged, Placed


def place_shared(placed: Placed, sink: Sink) -> None:
    """Offsets of shared variables and sizes of .nv.shared sections."""
    merged = placed.merged
    objects = merged.objects
    job = objects.job
    # With -r all stay, and without -g no array has a place yet.
    keeps_symbols = job.debug or (job.executable and job.options.preserve_relocs)
    aligns_arrays = objects.traits & TRAIT_ALIGNS_ARRAYS != 0
    shares = sharedmap.gather(merged)
    if job.executable:
        shared.layout_shared(shares, job.target.family, keeps_symbols, aligns_arrays, job.debug)
        limit = job.target.shared_limit
        oversized = sharedmap.find_oversized(shares, limit, job.target.family)
        if oversized:
            from pylink.phases.report_memory import report_shared  # noqa: PLC0415 -- an error

            def shares_of(kernel: int) -> list[tuple[int, int]]:
                return _shares_of(merged, shares, kernel)

            report_shared(merged, oversized, shares_of, limit, sink)
    else:
        shared.layout_relocatable(shares, aligns_arrays, job.debug)
    sharedmap.apply(placed, shares.seal(), keeps_symbols)


def _shares_of(merged: Merged, shared: SharedTables, kernel: int) -> list[tuple[int, int]]:
    """The variables of one kernel, an entity: symbol row and bytes each."""
    number = list(shared.kernel_entities).index(kernel)
    own = [row for row, owner in enumerate(shared.variables.column("owner")) if owner == number]
    used = [use.variable for use in shared.uses if use.kernel == number]
    return [
        (
            merged.entities[shared.variable_entities[variable]].winner,
            shared.variables[variable].size,
        )
        for variable in dict.fromkeys(own + used)
        if shared.variable_entities[variable] >= 0
    ]
