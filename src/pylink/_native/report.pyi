from pylink._native.tables import MergedTables, Outs, PlacedTables

def memory_use(outs: Outs) -> tuple[int, list[tuple[int, int]]]:
    """Bytes of global memory, and (bank, bytes) of the constant banks of the link."""

def kernel_use(
    placed: PlacedTables,
) -> list[tuple[int, int, int, int, int, list[tuple[int, int]]]]:
    """(entity, registers, barriers, stack, shared, banks) of each kernel of the output.

    The kernel whose code was created last comes first. `stack` is in bytes: only the kernel's own
    frame if the depth of its calls has no bound. `shared` is the size of .nv.shared.K with the
    reserve. `banks` lists (bank, bytes) of the kernel's own constant banks. With -r these are the
    resources of the kernel alone.
    """

def call_lists(merged: MergedTables) -> list[tuple[int, int, list[int]]]:
    """(entity, regcount, callees) of every function, in creation order.

    `regcount` is -1 if no input defines the function. `callees` are the places, from 1, of the
    called functions in this list, newest call first. An indirect call stands for all functions of
    its prototype whose address is taken.
    """

def propagations(merged: MergedTables) -> list[tuple[int, int, int, int]]:
    """(registers, function, kernel, limit) for each register count that propagates to a kernel."""
