"""Resource use of kernels (-v) and the call graph, for links that print them.

Functions and kernels are numbers of entities, except in `callees`.
"""

from pylink._native.results import MergedTables, PlacedTables
from pylink._native.tables import Outs

def sum_memory(outs: Outs) -> tuple[int, list[tuple[int, int]]]:
    """Return the bytes of global memory, and (bank, bytes) of banks that all kernels share."""

class KernelUse:
    """The resources of a kernel of the output; with -r without those of functions that it calls.

    `stack` is in bytes, and 0 with -r. It is only the kernel's own frame if the depth of its calls
    has no bound, or if it inherits nothing (KEEPS_ALL). `shared` is the size of .nv.shared.K in
    bytes, with the memory that the system reserves there. `banks` lists (bank, bytes) of the
    kernel's own constant banks.
    """

    entity: int
    registers: int
    barriers: int
    stack: int
    shared: int
    banks: list[tuple[int, int]]

def list_kernel_use(placed: PlacedTables) -> list[KernelUse]:
    """List the resources of each kernel; the last kernel in creation order of code comes first."""

class FunctionCalls:
    """A function and the functions that it calls.

    `registers` is its own count, -1 if no input defines it. `callees` are the called functions, the
    last call first: their numbers in the list that `list_calls` returns, from 1. An indirect call
    stands for all functions of its prototype whose address is taken.
    """

    entity: int
    registers: int
    callees: list[int]

def list_calls(merged: MergedTables) -> list[FunctionCalls]:
    """List every function, in creation order, with the functions that it calls."""

class Propagation:
    """The register count of a function that propagates to a kernel, and the kernel's limit.

    `limit` is the largest register count that the kernel may have.
    """

    registers: int
    function: int
    kernel: int
    limit: int

def list_propagations(merged: MergedTables) -> list[Propagation]:
    """List all register counts that propagate to kernels, in the order of nvlink's messages."""
