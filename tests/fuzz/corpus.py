"""The programs that are fuzzed: those of the golden tests and the demo, and generated ones.

Generated programs need the CUDA compiler; what it makes is cached by `helpers.oracle`.
"""

from __future__ import annotations

import functools
from pathlib import Path

from helpers import demo, oracle
from helpers.programs import generate

GOLDEN = Path(__file__).parents[1] / "golden"
GENERATED_ARCHES = ("75", "90a", "100")

# More cubins make a job slow without making it different.
MOST_INPUTS = 6


@functools.cache
def program(name: str) -> tuple[str, tuple[bytes, ...]]:
    """The architecture, such as 90a, and the cubins of a program by its name."""
    kind, arch, which = name.split("/")
    if kind == "golden":
        paths = sorted((GOLDEN / arch / which).glob("m*.cubin"))
    elif kind == "demo":
        paths = demo.cubins(f"sm_{arch}")
    else:
        modules = generate(int(which)).modules[:MOST_INPUTS]
        return arch, tuple(
            oracle.compile(module.source, arch, module.flags, name=module.name)
            for module in modules
        )
    return arch, tuple(path.read_bytes() for path in paths[:MOST_INPUTS])


@functools.cache
def names(generated: int = 0) -> tuple[str, ...]:
    """The names of all programs, with this many seeds of generated ones."""
    found = [
        f"golden/{path.parent.name}/{path.name}"
        for path in GOLDEN.glob("*/*/")
        if any(path.glob("m*.cubin"))
    ]
    found += [f"demo/{arch.removeprefix('sm_')}/all" for arch in demo.ARCHES]
    found += [f"made/{arch}/{seed}" for arch in GENERATED_ARCHES for seed in range(generated)]
    return tuple(sorted(found))
