"""Part of layout: shared memory. A variable has an offset in each kernel that uses it."""

from __future__ import annotations

from pylink._native import shared, sharedmap
from pylink.facts.releases import TRAIT_ALIGNS_ARRAYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink._native.results import SharedTables
    from pylink.phases.results import Merged, Placed


def place_shared(placed: Placed) -> Oversized | None:
    """Place shared variables and size .nv.shared sections.

    Returns the kernels that exceed the limit of shared memory, None if there are none.
    """
    merged = placed.merged
    objects = merged.objects
    job = objects.job
    # With -r, all variables keep their symbols in any case, and extern arrays get offsets only with
    # -g. So --preserve-relocs changes nothing there.
    keeps_symbols = job.debug or (job.executable and job.options.preserve_relocs)
    reserves = not job.options.disable_smem_reservation
    aligns_arrays = objects.traits & TRAIT_ALIGNS_ARRAYS != 0
    shared_tables = sharedmap.gather(merged)
    oversized = None
    if job.executable:
        shared.layout_shared(
            shared_tables,
            job.target.family,
            keeps_common=keeps_symbols,
            aligns_arrays=aligns_arrays,
            ties_arrays=job.debug,
            reserves=reserves,
        )
        limit = job.target.shared_limit
        large = sharedmap.find_oversized(shared_tables, limit, job.target.family, reserves=reserves)
        if large:
            oversized = Oversized(merged, shared_tables, dict(large))
    else:
        shared.layout_relocatable(shared_tables, aligns_arrays=aligns_arrays, ties_arrays=job.debug)
    sharedmap.apply_layout(
        placed, shared_tables.seal(), keep_symbols=keeps_symbols, reserves=reserves
    )
    return oversized


class Oversized:
    """Kernels whose shared memory exceeds the limit: `kernels` has their bytes by entity.

    `shared` has the tables of shared variables.
    """

    __slots__ = ("kernels", "merged", "shared")

    def __init__(self, merged: Merged, shared: SharedTables, kernels: dict[int, int]) -> None:
        self.merged = merged
        self.shared = shared
        self.kernels = kernels

    def shares(self, kernel: int) -> list[tuple[int, int]]:
        """Return the variables that a kernel (an entity) owns or uses: symbol row and bytes."""
        shared, entities = self.shared, self.merged.entities
        number = list(shared.kernel_entities).index(kernel)
        owned = [
            row for row, owner in enumerate(shared.variables.column("owner")) if owner == number
        ]
        used = [use.variable for use in shared.uses if use.kernel == number]
        return [
            (entities[shared.variable_entities[variable]].winner, shared.variables[variable].size)
            for variable in dict.fromkeys(owned + used)
            if shared.variable_entities[variable] >= 0
        ]
