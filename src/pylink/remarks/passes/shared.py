"""Pass shared-layout: offsets of the shared variables of each kernel, and overlaps."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from pylink._native import sharedmap
from pylink.facts import sectionkinds
from pylink.facts.target import FAMILY_A, FAMILY_B, SYSTEM_SHARED
from pylink.remarks.passes.catalogue import (
    ARRAY_PLACED,
    ARRAYS_ALIAS,
    KERNEL_SHARED,
    TOO_MUCH_SHARED,
    VARIABLE_PLACED,
    VARIABLES_OVERLAID,
    At,
)
from pylink.remarks.passes.graph import CallGraph
from pylink.remarks.passes.view import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.results import Placed
    from pylink.remarks import Remarks

# Bit of `flags` in a variable's row (EXTERN in native code): the variable is an extern array.
ARRAY_FLAG = 2


def emit(placed: Placed, remarks: Remarks) -> None:
    """Emit remarks on shared memory; a relocatable link places no variables."""
    if placed.merged.objects.job.executable:
        SharedPass(placed, remarks).run()


class Variable:
    """A shared variable; `start` is its offset in the section of each kernel that uses it.

    Offsets include the bytes reserved for the system. `users` are the entities of these kernels.
    """

    __slots__ = ("align", "entity", "size", "start", "users")

    def __init__(self, entity: int, size: int, align: int, start: int) -> None:
        self.entity = entity
        self.size = size
        self.align = align
        self.start = start
        self.users: set[int] = set()

    @property
    def end(self) -> int:
        return self.start + self.size


class SharedPass:
    """Collects, by the entity of each kernel, its variables, extern arrays and section size.

    They are in `by_kernel`, `arrays` and `sizes`; `variables` has the variables of all kernels. A
    kernel may have `limit` bytes of shared memory. `reserved` bytes at the start of each section
    are for the system. `deducted` bytes of its size do not count toward `limit`.
    """

    def __init__(self, placed: Placed, remarks: Remarks) -> None:
        merged = placed.merged
        job = merged.objects.job
        self.placed = placed
        self.view = View(merged)
        self.remarks = remarks
        self.limit = job.target.shared_limit
        has_reserve = job.target.family != FAMILY_A and not job.options.disable_smem_reservation
        self.reserved = SYSTEM_SHARED if has_reserve else 0
        # On sm_90, nvlink subtracts the reserve from all sizes, even from those without it.
        self.deducted = SYSTEM_SHARED if job.target.family == FAMILY_B else self.reserved
        self.sizes = {
            row.entity: row.size
            for row, index in zip(placed.outs, placed.section_index, strict=True)
            if row.kind == sectionkinds.SHARED and index
        }
        self.variables: list[Variable] = []
        self.by_kernel: dict[int, list[Variable]] = defaultdict(list)
        self.arrays: dict[int, list[int]] = {}
        self._gather()

    def _gather(self) -> None:
        """Fill `variables`, `by_kernel` and `arrays`: compute again which kernel uses what."""
        shared = sharedmap.gather(self.placed.merged)
        kernels = list(shared.kernel_entities)
        # By row of `shared.variables`; None for extern arrays and variables that are not placed.
        variables: list[Variable | None] = []
        arrays = set()
        for entity, row in zip(shared.variable_entities, shared.variables, strict=True):
            variable = None
            if row.flags & ARRAY_FLAG:
                arrays.add(entity)
            elif entity >= 0 and not self.placed.lost[entity]:
                start = self.placed.values[entity] + self.reserved
                variable = Variable(entity, row.size, row.align, start)
                if row.owner >= 0:
                    variable.users.add(kernels[row.owner])
            variables.append(variable)
        for use in shared.uses:
            used = variables[use.variable]
            if used is not None:
                used.users.add(kernels[use.kernel])
        self.variables = [used for used in variables if used is not None]
        for variable in self.variables:
            for kernel in variable.users:
                self.by_kernel[kernel].append(variable)
        if shared.extern_uses:
            users = {kernels[use.kernel] for use in shared.extern_uses}
            self.arrays = self._arrays_of(users, arrays)

    def _arrays_of(self, kernels: set[int], arrays: set[int]) -> dict[int, list[int]]:
        """Return, by kernel, the extern arrays to which it or a function that it reaches refers.

        `arrays` are the entities of all extern arrays.
        """
        # By function: the extern arrays to which its own code refers.
        referenced: dict[int, set[int]] = defaultdict(set)
        kinds = self.placed.outs.column("kind")
        for fixup in self.placed.merged.fixups:
            if fixup.entity in arrays and kinds[fixup.out] == sectionkinds.TEXT:
                referenced[fixup.function].add(fixup.entity)
        graph = CallGraph(self.placed.merged)
        arrays_of = {}
        for kernel in kernels:
            reached = graph.reach((kernel,))
            arrays_of[kernel] = sorted(
                {
                    array
                    for function in reached.keys() & referenced.keys()
                    for array in referenced[function]
                }
            )
        return arrays_of

    def run(self) -> None:
        """Emit the remarks of each kernel, then those of variables that overlap."""
        for kernel in sorted(self.sizes.keys() | self.by_kernel.keys()):
            self._emit_kernel(kernel)
        self._emit_overlaid()

    def _emit_kernel(self, kernel: int) -> None:
        """Emit a kernel's variables by offset, its extern arrays, the total, and any excess."""
        function, place = self.view.name(kernel), self.view.at_entity(kernel)
        size = self.sizes.get(kernel, 0)
        variables = sorted(
            self.by_kernel.get(kernel, ()), key=lambda variable: (variable.start, variable.entity)
        )
        end, padding = self.reserved, 0
        for variable in variables:
            gap = max(variable.start - end, 0)
            padding += gap
            end = max(end, variable.end)
            self.remarks.emit(
                VARIABLE_PLACED(
                    function,
                    place,
                    variable.size,
                    Variable=At(
                        self.view.name(variable.entity), self.view.at_entity(variable.entity)
                    ),
                    Offset=variable.start,
                    Size=variable.size,
                    Align=variable.align,
                    Padding=gap,
                )
            )
        self._emit_arrays(kernel, size)
        self.remarks.emit(
            KERNEL_SHARED(
                function,
                place,
                size,
                Size=size,
                VariableBytes=sum(variable.size for variable in variables),
                Variables=len(variables),
                Padding=padding + max(size - end, 0),
                Reserved=min(self.reserved, size),
            )
        )
        if size > self.limit + self.deducted:
            own_size = size - self.deducted
            self.remarks.emit(
                TOO_MUCH_SHARED(function, place, own_size, Size=own_size, Limit=self.limit)
            )

    def _emit_arrays(self, kernel: int, size: int) -> None:
        """Emit a kernel's extern arrays, which all start at the end of its section.

        The section has `size` bytes.
        """
        function, place = self.view.name(kernel), self.view.at_entity(kernel)
        arrays = [
            At(self.view.name(array), self.view.at_entity(array))
            for array in self.arrays.get(kernel, ())
        ]
        for array in arrays:
            self.remarks.emit(ARRAY_PLACED(function, place, size, Array=array, Offset=size))
        for other, array in pairwise(arrays):
            self.remarks.emit(
                ARRAYS_ALIAS(function, place, size, Array=array, Other=other, Offset=size)
            )

    def _emit_overlaid(self) -> None:
        """Emit overlaps of variables that are neighbors by offset, if no kernel uses both.

        Only variables that several kernels use are considered. A variable of one kernel overlaps
        with those of other kernels anyway.
        """
        common = [variable for variable in self.variables if len(variable.users) > 1]
        common.sort(key=lambda variable: (variable.start, -variable.size, variable.entity))
        for other, variable in pairwise(common):
            shared = min(variable.end, other.end) - variable.start
            if shared > 0 and not variable.users & other.users:
                self.remarks.emit(
                    VARIABLES_OVERLAID(
                        self.view.name(variable.entity),
                        self.view.at_entity(variable.entity),
                        shared,
                        Offset=variable.start,
                        Other=At(self.view.name(other.entity), self.view.at_entity(other.entity)),
                    )
                )
