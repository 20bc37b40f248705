"""Registers, barriers, stack and recursion that a kernel inherits from functions it reaches."""

from pylink._native.results import MergedTables

def analyze(merged: MergedTables) -> None:
    """Compute registers and stack of every function, O(calls): fills `functions`.

    `stack` is the deepest sum of frames in bytes over the calls, NO_STACK_BOUND once a
    recursion is reached. A kernel's `regcount` is the largest of all functions it reaches, or its
    own if it or one of them sets the number of registers itself.
    """

def find_recursive(merged: MergedTables) -> tuple[list[int], bool]:
    """Return (recursive, exceeds_registers).

    `recursive` are the entities of kernels without a bound on their stack, in creation order, each
    once for every function without a bound that it calls. `exceeds_registers` says whether any
    kernel reaches a function with more registers than the kernel itself was limited to.
    """

def find_unpatched(merged: MergedTables) -> int:
    """Return the entity of the first function that is not a tools patch; -1 if all are.

    The attribute TOOLS_PATCH_FUNC of a function says that it was compiled as a patch for tools,
    such as debuggers. The first function is the one that was created first.
    """
