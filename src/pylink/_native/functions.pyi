"""Properties that a kernel takes from functions it reaches: registers, barriers, stack, recursion.

Tables are packed rows of `rows.pxd`, as `elfread.parse` and `resolve` return them.
"""

from pylink._native.tables import MergedTables

def analyze(merged: MergedTables) -> None:
    """Compute registers and stack of every function, O(calls): fills `functions`.

    `stack` is the deepest sum of frames in bytes over the calls, NO_STACK_BOUND once a
    recursion is reached. A kernel's `regcount` is the largest of all functions it reaches, or its
    own if it or one of them sets the number of registers itself.
    """

def find_recursive(merged: MergedTables) -> tuple[list[int], bool]:
    """Kernels that recurse, in creation order, and whether one lacks registers.

    `recursive` has the entity of a kernel without a bound on its stack once for each such
    callee. `crowded` says whether any kernel reaches a function with more registers than the
    kernel itself was limited to.
    """

def find_unpatched(merged: MergedTables) -> int:
    """The first function (entity) that was not compiled as a tools patch; -1 if all were.

    TOOLS_PATCH_FUNC in a function's records says so. Functions are in creation order.
    """
