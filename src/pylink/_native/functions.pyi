"""Registers, barriers, stack and recursion that a kernel inherits from functions it reaches."""

from pylink._native.results import MergedTables

def analyze(merged: MergedTables) -> None:
    """Compute registers and stack of every function, O(calls): fills `functions`.

    `stack` is the deepest sum of frames in bytes over the calls, or NO_STACK_BOUND if the function
    reaches a recursion or a function that states no bound. A kernel's `regcount` is the largest of
    its own and those of all functions it reaches. It is its own alone if `keeps` has a bit: for
    example, if the kernel or such a function sets its number of registers itself (REG_RECONFIG).
    """

def find_recursive(merged: MergedTables) -> tuple[list[int], bool]:
    """Return kernels of unbounded stack, and whether any reaches more registers than its limit.

    The kernels are live entities in creation order, without idle ones, each once for every function
    without a bound that it calls. The second value says whether any live kernel, not idle, inherits
    more registers than it was limited to. Idle kernels are those that are neither selected nor
    launched by device code.
    """

def find_unpatched(merged: MergedTables) -> int:
    """Return the first defined function (entity) without the attribute TOOLS_PATCH_FUNC, or -1.

    The attribute TOOLS_PATCH_FUNC of a function says that it was compiled as a patch for tools,
    such as debuggers. The first function is the one that was created first. A function whose
    code is a part of another one's is omitted.
    """
