from pylink._native.tables import MergedTables, Outs, PlacedTables

def memory_use(outs: Outs) -> tuple[int, list[tuple[int, int]]]:
    """Bytes of global memory, and (bank, bytes) of the constant banks of the link."""

class KernelUse:
    """The resources of a kernel of the output; with -r those of the kernel alone.

    `stack` is in bytes: only the kernel's own frame if the depth of its calls has no bound.
    `shared` is the size of .nv.shared.K with the reserve. `banks` lists (bank, bytes) of the
    kernel's own constant banks.
    """

    entity: int
    registers: int
    barriers: int
    stack: int
    shared: int
    banks: list[tuple[int, int]]

def kernel_use(placed: PlacedTables) -> list[KernelUse]:
    """The resources of each kernel; the kernel whose code was created last comes first."""

class FunctionCalls:
    """A function and those that it calls.

    `registers` is -1 if no input defines the function. `callees` are the places, from 1, of the
    called functions in the list of all, newest call first. An indirect call stands for all
    functions of its prototype whose address is taken.
    """

    entity: int
    registers: int
    callees: list[int]

def call_lists(merged: MergedTables) -> list[FunctionCalls]:
    """The calls of every function, in creation order."""

class Propagation:
    """The register count of a function that propagates to a kernel, and the kernel's limit."""

    registers: int
    function: int
    kernel: int
    limit: int

def propagations(merged: MergedTables) -> list[Propagation]:
    """All register counts that propagate to kernels."""
