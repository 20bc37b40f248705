"""Launching a kernel: a grid of blocks that run in turns until all threads have exited.

    program = Program(Loaded(image, "90a"))
    data = program.loaded.memory.place(bytes(1024))
    grid = Grid(program, "kernel", block=(32, 1, 1), parameters=struct.pack("<QI", data, 7))
    grid.run()
    program.loaded.memory.read(data, 1024), grid.printed, grid.usage

Global memory lives as long as the loaded executable, so kernels can follow each other.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from emulator import hooks
from emulator.attributes import UNKNOWN_STACK, FunctionInfo
from emulator.errors import Fault, Unsupported
from emulator.lanes import Row, row, spread
from emulator.machine import Block, Fragment, Usage
from emulator.memory import (
    CODE_BASE,
    HOOK_HIGH,
    LOCAL_HIGH,
    PARAMETER_HIGH,
    SHARED_HIGH,
    Window,
)
from emulator.program import CodeBlock, Program
from emulator.semantics.control import go_apart

Size = tuple[int, int, int]

# Instructions after which another fragment has its turn, for those that wait for others in loops.
_TURN = 400

# Bytes of stack where the file does not say how many are needed.
STACK_LIMIT = 1 << 14


class Grid:
    """One launch; with `cluster`, as clusters of one block each.

    `instructions` limits what all warps together may execute; `stack` is the least that each has.
    """

    def __init__(
        self,
        program: Program,
        kernel: str,
        *,
        grid: Size = (1, 1, 1),
        block: Size = (32, 1, 1),
        parameters: bytes = b"",
        shared: int = 0,
        cluster: bool = False,
        stack: int = 0,
        instructions: int = 1_000_000,
    ) -> None:
        loaded = program.loaded
        if kernel not in loaded.kernels:
            raise Fault(f"there is no kernel '{kernel}'")
        self.program = program
        self.kernel = kernel
        self.entry = loaded.kernels[kernel]
        self.grid_size, self.block_size = grid, block
        self.memory = loaded.memory
        self.limit = instructions
        self.dynamic_shared = shared
        self.cluster = cluster
        self.issued = 0
        self.shared_size = loaded.shared_size(kernel) + shared
        self.info = loaded.info.get(kernel, FunctionInfo())
        self.stack_size: int = max(_stack_size(self.info), stack)
        self.local_size: int = -(-self.stack_size // 16) * 16
        self.descriptor = 0x1234_5678_9ABC_DEF0
        self.usage = Usage()
        self.printed: list[str] = []
        self.visited: set[int] = set()
        self._ticks = 0
        self._rows: dict[tuple[int, int], Row] = {}
        self._words: dict[int, Row] = {}
        self._known: dict[int, np.ndarray[tuple[int], np.dtype[np.bool_]]] = {}
        self.code = Window("code", CODE_BASE, len(loaded.code), valid=True, writable=False)
        self.code.bytes[: len(loaded.code)] = np.frombuffer(bytes(loaded.code), np.uint8)
        self._fill_banks(parameters)
        self.blocks = [Block(self, index) for index in _indices(grid)]

    # Constant banks.

    def _fill_banks(self, parameters: bytes) -> None:
        loaded, layout = self.program.loaded, self.program.loaded.layout
        for number, bank in loaded.banks_of(self.kernel).items():
            if number == 0:
                continue
            size = -(-bank.size // 4) * 4
            data = self.memory.read(bank.address, size)
            self._words[number] = np.frombuffer(data, np.uint32)
            self._known[number] = np.ones(size // 4, np.bool_)
        first = layout.parameters
        if self.info.parameter_size is not None and len(parameters) > self.info.parameter_size:
            raise Fault(
                f"{len(parameters)} bytes of parameters, {self.info.parameter_size} expected"
            )
        end = first + -(-len(parameters) // 4) * 4
        words, known = np.zeros(end // 4, np.uint32), np.zeros(end // 4, np.bool_)
        known[first // 4 :] = True
        words.view(np.uint8)[first : first + len(parameters)] = np.frombuffer(parameters, np.uint8)
        for name, offset in layout.words.items():
            words[offset // 4], known[offset // 4] = self._word(name), True
        for name, offset in layout.addresses.items():
            value = self._address(name)
            words[offset // 4], words[offset // 4 + 1] = value & 0xFFFFFFFF, value >> 32
            known[offset // 4 : offset // 4 + 2] = True
        self._words[0], self._known[0] = words, known
        # Code reads parameters by their generic address as well.
        self.parameters = Window("parameter", PARAMETER_HIGH << 32, end, valid=True, writable=False)
        self.parameters.words[: len(words)] = words

    def _word(self, name: str) -> int:
        axes = {"x": 0, "y": 1, "z": 2}
        if name.startswith("ntid."):
            return self.block_size[axes[name[-1]]]
        if name.startswith("nctaid."):
            return self.grid_size[axes[name[-1]]]
        layout = self.program.loaded.layout
        return {
            "stack": self.local_size,
            "dynamic_shared": self.dynamic_shared,
            "grid_low": 1,
            "grid_high": 0,
            "nsm": 1,
            "explicit_cluster": int(self.cluster),
            "cluster_blocks": 1,
            "reserved_shared": layout.shared_start,
        }[name]

    def _address(self, name: str) -> int:
        loaded = self.program.loaded
        if name == "constants":
            bank = loaded.banks_of(self.kernel).get(3)
            return bank.address if bank else 0
        return {
            "shared_window": SHARED_HIGH << 32,
            "local_window": LOCAL_HIGH << 32,
            "parameters": PARAMETER_HIGH << 32,
            "descriptor": self.descriptor,
        }[name]

    def constant(self, bank: int, word: int) -> Row:
        """One word of a constant bank; an error names a bank or an offset that is not known."""
        found = self._rows.get((bank, word))
        if found is None:
            self._check(bank, word)
            found = self._rows[bank, word] = self._words[bank][word : word + 1].copy()
        return found

    def gather(self, bank: int, offsets: Row, f: Fragment) -> Row:
        """A word of a constant bank for each lane, at offsets in bytes."""
        if len(offsets) > 1:
            offsets = np.where(f.mask, offsets, spread(offsets, f.warp.size)[f.mask][0])
        if (offsets % 4).any():
            raise Fault(f"misaligned load from constant bank {bank}")
        words = offsets // 4
        for word in np.unique(words).tolist():
            self._check(bank, word)
        return self._words[bank][words]

    def _check(self, bank: int, word: int) -> None:
        known = self._known.get(bank)
        if known is None:
            raise Fault(f"constant bank {bank} does not exist")
        if not 0 <= word < len(known):
            raise Fault(f"load from constant bank {bank} at {4 * word:#x}, beyond its end")
        if not known[word]:
            raise Unsupported(f"constant bank {bank} at {4 * word:#x}")
        first = self.program.loaded.layout.parameters // 4
        if bank == 0 and word >= first:
            self.usage.parameters.add(4 * (word - first))

    def tick(self) -> int:
        """A clock that goes on whenever somebody looks."""
        self._ticks += 1000
        return self._ticks

    # Running.

    def run(self) -> None:
        """Execute until all threads have exited; Fault if they wait for each other or never end."""
        with np.errstate(all="ignore"):
            while True:
                fragments = [
                    f for block in self.blocks for warp in block.warps for f in warp.fragments
                ]
                if not fragments:
                    break
                ran = False
                for f in fragments:
                    if f.wait is None and f.bits and f in f.warp.fragments:
                        ran = True
                        self._run_fragment(f)
                if not ran:
                    raise Fault(f"all threads wait: {_describe_waits(fragments)}")
        self.usage.registers = max(
            (self.program.block(address).touched for address in self.visited), default=0
        )
        warps = [warp for block in self.blocks for warp in block.warps]
        self.usage.stack = self.local_size - min(warp.lowest_stack for warp in warps)

    def _run_fragment(self, f: Fragment) -> None:
        """Run a fragment until it waits, ends or has had its turn."""
        pc, spent = f.pc, 0
        blocks, visited = self.program.blocks, self.visited
        f.full = f.bits == f.warp.alive
        while True:
            if pc >> 32 == HOOK_HIGH:
                pc = self._call_hook(f, pc)
                continue
            block = blocks.get(pc) or self._first_visit(pc)
            visited.add(pc)
            lanes = f.count
            step = None
            try:
                for step in block.steps:
                    step(f)
                step = None
                following = block.end(f)
            except (Fault, Unsupported) as error:
                at = block.steps.index(step) if step is not None else block.count - 1
                raise self._located(error, block.instructions[at].address) from error
            self.usage.instructions += block.count * lanes
            spent += block.count
            self.issued += block.count
            if self.issued > self.limit:
                raise Fault(f"more than {self.limit} instructions (at {self._name(pc)})")
            if following is None:
                return
            pc = following
            if spent > _TURN:
                f.pc = pc
                return

    def _first_visit(self, pc: int) -> CodeBlock:
        try:
            return self.program.block(pc)
        except Unsupported as error:
            raise self._located(error, pc) from error

    def _located(self, error: Exception, address: int) -> Exception:
        if error.args and "(at " in str(error.args[0]):
            return error
        text = ""
        if not isinstance(error, Unsupported):
            text = f": {self.program.loaded.instruction(address).text}"
        return type(error)(f"{error} (at {self._name(address)}{text})")

    def _name(self, address: int) -> str:
        try:
            text = self.program.loaded.text_of(address)
        except Fault:
            return f"{address:#x}"
        return f"{text.name}+{address - text.start:#x}"

    def _call_hook(self, f: Fragment, address: int) -> int:
        """Do what a function of the driver does, and return to where it was called from."""
        name = self.program.loaded.hooks.get(address)
        if name is None:
            raise Fault(f"call of {address:#x}, where there is no function")
        hook = hooks.HOOKS.get(name)
        if hook is None:
            raise Unsupported(f"function '{name}' of the driver")
        hook(f)
        returns = hooks.return_address(f)
        target = go_apart(f, f.bits, returns, 0)
        assert target is not None
        return target


def _stack_size(info: FunctionInfo) -> int:
    for size in (info.min_stack, info.frame_size):
        if size is not None:
            return STACK_LIMIT if size == UNKNOWN_STACK else size
    return STACK_LIMIT


def _indices(size: Size) -> Iterator[Size]:
    for z in range(size[2]):
        for y in range(size[1]):
            for x in range(size[0]):
                yield x, y, z


def _describe_waits(fragments: list[Fragment]) -> str:
    waits = {f"{f.count} at {f.wait.kind} {f.wait.key}" for f in fragments if f.wait is not None}
    return ", ".join(sorted(waits))


__all__ = ["STACK_LIMIT", "Grid", "row"]
