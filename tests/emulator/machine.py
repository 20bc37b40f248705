"""State of a running grid: fragments of warps, warps, thread blocks.

A fragment is a set of lanes of one warp that run together, at one address. A warp starts as one
fragment; lanes that take different ways become fragments of their own, and only convergence
barriers (BSSY and BSYNC), WARPSYNC and a few like them make one of several again. Registers
belong to the warp; votes and shuffles see the lanes of their fragment alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from emulator.errors import Fault
from emulator.lanes import Flags, Row, row, to_bits, to_mask
from emulator.memory import SHARED_HIGH, Window

if TYPE_CHECKING:
    from emulator.grid import Grid

# The barrier of a cluster, beside those that programs number.
CLUSTER = -1

REGISTERS, UNIFORM_REGISTERS, PREDICATES, BARRIERS = 256, 256, 8, 16

# What registers hold before anybody writes them.
_GARBAGE = 0xDEAD0000


@dataclass
class Wait:
    """Why a fragment does not run: `kind` names the instruction, `key` what is waited for."""

    kind: str
    key: int = 0
    count: int = 0  # threads that a BAR wants, 0 for all
    vote: str = ""  # BAR.RED: how predicates are combined
    value: Flags | None = None


class Fragment:
    """Lanes of a warp that run together. `full` says that they are all that still run."""

    __slots__ = (
        "B",
        "P",
        "R",
        "U",
        "UP",
        "bits",
        "count",
        "full",
        "mask",
        "pc",
        "spent",
        "wait",
        "warp",
    )

    def __init__(self, warp: Warp, pc: int, bits: int) -> None:
        self.warp = warp
        self.pc = pc
        self.R, self.U, self.P, self.UP, self.B = warp.R, warp.U, warp.P, warp.UP, warp.B
        self.wait: Wait | None = None
        self.spent = 0  # instructions since it was last chosen
        self.set_lanes(bits)

    def set_lanes(self, bits: int) -> None:
        """Make these its lanes."""
        self.bits = bits
        self.mask: Flags = to_mask(bits, self.warp.size)
        self.count = bits.bit_count()
        self.full = bits == self.warp.alive

    def where(self, flags: Flags) -> int:
        """Of its lanes those with a flag, as bits."""
        return to_bits(flags & self.mask)


class Warp:
    """Up to 32 threads with their registers. `alive` are those that have not exited, as bits."""

    def __init__(self, block: Block, index: int, size: int, pc: int) -> None:
        self.block = block
        self.index = index
        self.size = size
        self.alive = (1 << size) - 1
        self.R: list[Row] = [row(_GARBAGE + i) for i in range(REGISTERS)]
        self.U: list[Row] = [row(_GARBAGE + 0x1000 + i) for i in range(UNIFORM_REGISTERS)]
        self.P: list[Flags] = [np.zeros(1, np.bool_) for _ in range(PREDICATES)]
        self.UP: list[Flags] = [np.zeros(1, np.bool_) for _ in range(PREDICATES)]
        self.B: list[Row] = [row(0)] * BARRIERS
        self.yields = 0  # since lanes began to wait at a convergence barrier
        self.cluster_phase = np.full(size, -1)
        self.result: Row = row(0)  # of the last BAR.RED, as B2R.RESULT reads it
        first = 32 * index
        numbers = np.arange(first, first + size, dtype=np.uint32)
        x, y, _ = block.grid.block_size
        self.thread: tuple[Row, Row, Row] = (numbers % x, numbers // x % y, numbers // (x * y))
        self.lane: Row = np.arange(size, dtype=np.uint32)
        self.local = LocalMemory(block.grid.local_size, size)
        self.fragments = [Fragment(self, pc, self.alive)]
        self.lowest_stack = block.grid.local_size

    def split(self, fragment: Fragment, bits: int, pc: int) -> Fragment:
        """Take lanes out of a fragment; they go on at `pc` as a fragment of their own."""
        other = Fragment(self, pc, bits)
        fragment.set_lanes(fragment.bits & ~bits)
        self.fragments.append(other)
        return other

    def exit(self, fragment: Fragment, bits: int) -> None:
        """These lanes of the fragment end."""
        self.alive &= ~bits
        fragment.set_lanes(fragment.bits & ~bits)
        if not fragment.bits:
            self.fragments.remove(fragment)
        for other in self.fragments:
            other.full = other.bits == self.alive


class LocalMemory:
    """The local memory of a warp's threads, of the same size each, word by word."""

    def __init__(self, size: int, lanes: int) -> None:
        self.size = size
        self.stride = max(size, 16)
        self.window = Window("local", 0, self.stride * lanes, valid=True, writable=True)
        self.lanes = lanes


class Block:
    """One thread block: its warps, shared memory and barriers."""

    def __init__(self, grid: Grid, index: tuple[int, int, int]) -> None:
        self.grid = grid
        self.index = index
        x, y, z = grid.block_size
        threads = x * y * z
        self.shared = Window(
            "shared", SHARED_HIGH << 32, grid.shared_size, valid=True, writable=True
        )
        self.arrived: dict[int, int] = {}  # threads that arrived at a barrier without waiting
        self.cluster_phase = 0
        self.warps = [
            Warp(self, i, min(32, threads - 32 * i), grid.entry) for i in range(-(-threads // 32))
        ]

    def alive(self) -> int:
        """Threads that have not exited."""
        return sum(warp.alive.bit_count() for warp in self.warps)

    def arrive(self, barrier: int, threads: int, wanted: int) -> None:
        """Threads arrive that do not wait; `wanted` is 0 for all threads."""
        self.arrived[barrier] = self.arrived.get(barrier, 0) + threads
        self.settle()
        if wanted and self.arrived[barrier] > wanted:
            raise Fault(f"{self.arrived[barrier]} threads arrive at barrier {barrier} of {wanted}")

    def settle(self) -> None:
        """Let the threads go on that wait at a barrier to which all have come."""
        groups: dict[int, list[Fragment]] = {}
        for warp in self.warps:
            for f in warp.fragments:
                if f.wait is not None and f.wait.kind == "BAR":
                    groups.setdefault(f.wait.key, []).append(f)
        for barrier, group in groups.items():
            came = sum(f.count for f in group) + self.arrived.get(barrier, 0)
            wanted = max(f.wait.count for f in group if f.wait) or self.alive()
            if came > wanted:
                raise Fault(f"{came} threads at barrier {barrier} of {wanted}")
            if came == wanted:
                self.arrived[barrier] = 0
                self._release(group)
        if self.arrived.get(CLUSTER) and self.arrived[CLUSTER] >= self.alive():
            self.arrived[CLUSTER] = 0
            self.cluster_phase += 1
            for warp in self.warps:
                for f in warp.fragments:
                    if f.wait is not None and f.wait.kind == "CLUSTER":
                        f.wait = None

    @staticmethod
    def _release(group: list[Fragment]) -> None:
        """End the wait; of a BAR.RED, put the result where B2R finds it."""
        waits = [(f, f.wait) for f in group if f.wait is not None]
        votes = [(f, wait.value) for f, wait in waits if wait.value is not None]
        if votes:
            yes = sum(int(np.count_nonzero(value)) for _, value in votes)
            voters = sum(f.count for f, _ in votes)
            kind = waits[0][1].vote
            result = {"POPC": yes, "OR": int(yes > 0), "AND": int(yes == voters)}[kind]
            for f in group:
                f.warp.result = row(result)
        for f in group:
            f.wait = None


@dataclass
class Usage:
    """What the code of a launch was seen to use, for comparison with what the file says."""

    registers: int = 0  # the highest register plus one
    barriers: int = 0  # the highest barrier plus one
    stack: int = 0  # bytes below the initial stack pointer
    parameters: set[int] = field(default_factory=set)  # offsets of words that were read
    instructions: int = 0  # of all threads together


Step = Callable[[Fragment], None]
