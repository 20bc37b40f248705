"""All opcodes: those that run on, and those that end a block of instructions."""

from __future__ import annotations

from collections.abc import Callable

from emulator.build import Build
from emulator.machine import Step
from emulator.semantics import (
    atomics,
    barriers,
    bits,
    control,
    convergence,
    convert,
    double,
    half,
    integer,
    mbarriers,
    memory,
    move,
    packed,
    single,
    warps,
)

_MODULES = (
    integer,
    bits,
    packed,
    move,
    single,
    double,
    half,
    convert,
    memory,
    atomics,
    mbarriers,
    warps,
    control,
    convergence,
    barriers,
)

OPCODES: dict[str, Callable[[Build], Step]] = {}
for _module in _MODULES:
    OPCODES |= _module.OPCODES
ENDS: dict[str, Callable[[Build], convergence.End]] = {
    **control.ENDS,
    **convergence.ENDS,
    **barriers.ENDS,
}
