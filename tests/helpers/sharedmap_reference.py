"""Who uses which shared variable, and what its symbol says, over a small program.

Written from "Layout" and "Symbols of variables" in docs/format-notes/shared-memory.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from helpers.graph_reference import Graph
from helpers.shared_reference import COMMON, DEAD, RESERVED

FAMILY_A = 0


@dataclass
class Variable:
    """`home` is the function that has it for itself, or None: of .nv_debug.shared, or an array."""

    size: int
    align: int
    home: int | None = None
    is_array: bool = False


@dataclass
class Program:
    """`references` are pairs of a function and a variable; kernels beside `linked` are dead."""

    graph: Graph
    linked: list[int]
    variables: list[Variable]
    references: list[tuple[int, int]]

    def owners(self) -> list[int]:
        """The number of the kernel that each variable belongs to, or COMMON or DEAD."""
        return [
            COMMON
            if variable.home is None
            else self.linked.index(variable.home)
            if variable.home in self.linked
            else DEAD
            for variable in self.variables
        ]

    def code_of(self, kernel: int, *, deep: bool) -> set[int]:
        return {kernel} | (self.graph.reached(kernel) if deep else set())

    def uses(self, *, deep: bool) -> set[tuple[int, int]]:
        """Sized variables and the numbers of kernels that use them."""
        return {
            (variable, number)
            for number, kernel in enumerate(self.linked)
            for function, variable in self.references
            if function in self.code_of(kernel, deep=deep) and not self.variables[variable].is_array
        }

    def ties(self, *, by_name: bool, deep: bool) -> set[tuple[int, int]]:
        """Numbers of kernels and what ties them: a variable, or a function that is not theirs."""
        return {
            (number, self.graph.count + variable if by_name else -1 if own else function)
            for number, kernel in enumerate(self.linked)
            for function, variable in self.references
            for own in [function == kernel]
            if function in self.code_of(kernel, deep=deep) and self.variables[variable].is_array
        }


@dataclass
class Symbol:
    """The section that a sized variable ends in (a kernel, or None), and what st_value is."""

    kernel: int | None
    value: int
    mercury_value: int
    lost: bool


def symbols(program: Program, offsets: list[int], family: int, *, keeps: bool) -> list[Symbol]:
    """Of an executable; `keeps` with -g. An offset is -1 where a variable has no place."""
    found = []
    uses = program.uses(deep=True)
    for number, (variable, offset) in enumerate(zip(program.variables, offsets, strict=True)):
        users = {kernel for used, kernel in uses if used == number}
        kernel = variable.home
        if kernel is None and keeps and len(users) == 1:
            kernel = program.linked[users.pop()]
        place = max(offset, 0)
        reserve = 0 if family == FAMILY_A else RESERVED
        found.append(Symbol(kernel, place + reserve, place, offset < 0))
    return found
