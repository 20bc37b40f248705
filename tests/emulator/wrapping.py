"""Steps around steps: guards, and the watch on the stack pointer."""

from __future__ import annotations

import numpy as np

from emulator.build import flags_of
from emulator.errors import Fault
from emulator.machine import Fragment, Step
from emulator.operands import Register


def guarded(guard: Register, step: Step) -> Step:
    """The step for those lanes alone whose guard is true."""
    flags = flags_of(guard)

    def run(f: Fragment) -> None:
        mask = flags(f) & f.mask
        count = int(np.count_nonzero(mask))
        if not count:
            return
        if count == f.count:
            step(f)
            return
        saved = f.mask, f.bits, f.count, f.full
        f.mask = mask
        f.count = count
        f.bits = int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")
        f.full = False
        try:
            step(f)
        finally:
            f.mask, f.bits, f.count, f.full = saved

    return run


def stack_watched(step: Step) -> Step:
    """The step, after which the stack pointer is compared with the lowest so far."""

    def run(f: Fragment) -> None:
        step(f)
        pointer = f.R[1].view(np.int32)
        lowest = int(pointer.min() if len(pointer) == 1 else pointer[f.mask].min())
        if lowest < f.warp.lowest_stack:
            grid = f.warp.block.grid
            if grid.local_size - lowest > grid.stack_size:
                used = grid.local_size - lowest
                raise Fault(f"{used} bytes of stack used, {grid.stack_size} available")
            f.warp.lowest_stack = lowest

    return run
