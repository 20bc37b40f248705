"""What a kernel inherits from the functions it reaches: registers, stack, recursion.

Tables are packed rows of ``rows.pxd``, as ``elfread.parse`` and ``resolve`` return them.
"""

def analyze(
    arena: bytes,
    sections: bytes,
    entities: bytes,
    symbol_entity: bytes,
    symbol_role: bytes,
    calls: bytes,
    prototypes: bytes,
) -> bytes:
    """Register and stack need of every function: a FunctionRow per entity, O(calls).

    ``stack`` is the deepest sum of frames in bytes over the calls, NO_STACK_BOUND once a
    recursion is reached; a kernel's ``regcount`` is the largest of all functions it reaches,
    or its own where it or one of them sets the number of registers itself.
    """

def find_trouble(
    arena: bytes, sections: bytes, entities: bytes, functions: bytes
) -> tuple[list[int], list[tuple[int, int, int, int]]]:
    """Kernels in order of birth whose callees ask too much: (recursive, crowded).

    ``recursive`` has the entity of a kernel without a bound on its stack once for each such
    callee. ``crowded`` has (kernel, MAXREG_COUNT, callee, its registers) for kernels that reach a
    function with more registers than the kernel itself was limited to.
    """
