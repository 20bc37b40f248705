"""Parts of features of several kinds: element types, sizes, signatures."""

from __future__ import annotations

from helpers.programs_draft import Draft

INT_CALL = "__device__ int {}(int x)"
GUARD = "int i = blockIdx.x * blockDim.x + threadIdx.x;"


def element_type(draft: Draft) -> str:
    """Return a random type of elements."""
    return draft.rng.choice(("int", "float", "unsigned", "long long", "double", "short", "char"))


def array_size(draft: Draft) -> int:
    """Return a random number of elements."""
    return draft.rng.choice((1, 1, 2, 3, 4, 5, 8, 17, 64, 100))
