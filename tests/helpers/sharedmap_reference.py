"""A naive reference of the uses of shared variables, and of their symbols, for a small program.

Written from "Layout" and "Symbols of variables" in docs/format-notes/shared-memory.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from helpers.graph_reference import Graph
from helpers.shared_reference import COMMON, DEAD, RESERVED

FAMILY_A = 0


@dataclass
class Variable:
    """A shared variable.

    `home` is the kernel in whose section it is; None for one in .nv_debug.shared, and for an array.
    """

    size: int
    align: int
    home: int | None = None
    is_array: bool = False


@dataclass
class Program:
    """A program; `references` are pairs of a function and a variable, `linked` the live kernels."""

    graph: Graph
    linked: list[int]
    variables: list[Variable]
    references: list[tuple[int, int]]

    def owners(self) -> list[int]:
        """Return, by variable, the number of the kernel that it belongs to, or COMMON or DEAD."""
        return [
            COMMON
            if variable.home is None
            else self.linked.index(variable.home)
            if variable.home in self.linked
            else DEAD
            for variable in self.variables
        ]

    def code_of(self, kernel: int, *, deep: bool) -> set[int]:
        """Return functions whose code counts for a kernel: its own, with `deep` all it reaches."""
        return {kernel} | (self.graph.reached(kernel) if deep else set())

    def uses(self, *, deep: bool) -> set[tuple[int, int]]:
        """Return the pairs of a variable with a size and the number of a kernel that uses it."""
        return {
            (variable, number)
            for number, kernel in enumerate(self.linked)
            for function, variable in self.references
            if function in self.code_of(kernel, deep=deep) and not self.variables[variable].is_array
        }

    def ties(self, *, by_name: bool, deep: bool) -> set[tuple[int, int]]:
        """Return the pairs of a kernel's number and the tie of an extern array that it uses.

        The tie is, `by_name`, the array's number after the functions; else the device function that
        uses it, -1 for the kernel itself. With `deep`, code that the kernel reaches counts, too.
        """
        return {
            (number, self.graph.count + variable if by_name else -1 if is_own else function)
            for number, kernel in enumerate(self.linked)
            for function, variable in self.references
            for is_own in [function == kernel]
            if function in self.code_of(kernel, deep=deep) and self.variables[variable].is_array
        }


@dataclass
class Symbol:
    """The symbol of a variable with a size: its kernel's section (or None), and its st_value.

    `mercury_value` is that in the mercury half. `lost` says that no kernel uses the variable.
    """

    kernel: int | None
    value: int
    mercury_value: int
    lost: bool


def symbols(program: Program, offsets: list[int], family: int, *, keeps: bool) -> list[Symbol]:
    """Return the symbols of an executable.

    `keeps` is for -g. An offset of -1 is that of an unused variable.
    """
    pairs = []
    uses = program.uses(deep=True)
    for number, (variable, offset) in enumerate(zip(program.variables, offsets, strict=True)):
        users = {kernel for used, kernel in uses if used == number}
        kernel = variable.home
        if kernel is None and keeps and len(users) == 1:
            kernel = program.linked[users.pop()]
        place = max(offset, 0)
        reserve = 0 if family == FAMILY_A else RESERVED
        pairs.append(Symbol(kernel, place + reserve, place, offset < 0))
    return pairs
