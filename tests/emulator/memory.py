"""The memory of the emulated GPU: windows of addresses, and which bytes in them may be touched.

Addresses are 64-bit numbers; their upper half names the window. Accesses are made for all lanes at
once: `addresses` is an array of uint64, one for each active lane, and values are rows of 32-bit
words. Each access is checked for its alignment and against what was allocated, to the word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from emulator.errors import Fault

Words = npt.NDArray[Any]
Addresses = npt.NDArray[Any]

# The upper halves of the windows' addresses. A program learns of them from constant bank 0, from
# special registers, and from the relocations that the loader applies.
CODE_HIGH = 0x3
HOOK_HIGH = 0x6
GLOBAL_HIGH = 0x7F12
SHARED_HIGH = 0x7F40
LOCAL_HIGH = 0x7F41
PARAMETER_HIGH = 0x7F43

CODE_BASE = CODE_HIGH << 32 | 0x1000
GLOBAL_BASE = GLOBAL_HIGH << 32
HOOK_BASE = HOOK_HIGH << 32

_GUARD = 256  # bytes that belong to nobody between two allocations
_UNSET = 0xA5  # what memory holds that nobody wrote


class Window:
    """One piece of memory, from `base` on. `valid` has a flag for each word that may be touched."""

    def __init__(self, name: str, base: int, size: int, *, valid: bool, writable: bool) -> None:
        self.name = name
        self.base = base
        self.writable = writable
        self.bytes = np.full((size + 15) // 16 * 16, _UNSET, np.uint8)
        self.halves = self.bytes.view(np.uint16)
        self.words = self.bytes.view(np.uint32)
        self.valid = np.zeros(len(self.words), np.bool_)
        if valid:
            self.valid[: (size + 3) // 4] = True

    def offsets(self, addresses: Addresses, width: int, doing: str) -> npt.NDArray[Any]:
        """Offsets of accesses of `width` bytes; Fault names the first address that is wrong."""
        offsets: npt.NDArray[Any] = (addresses - np.uint64(self.base)).view(np.int64)
        if len(offsets) == 1:
            at = int(offsets[0])
            if not at % width and 0 <= at <= len(self.bytes) - width:
                word = at >> 2
                if all(self.valid[word : max(word + 1, (at + width) >> 2)].tolist()):
                    return offsets
            raise Fault(self._complaint(int(addresses[0]), width, doing))
        outside = (offsets < 0) | (offsets > len(self.bytes) - width)
        if width > 1:
            outside |= (offsets & (width - 1)) != 0
        if not outside.any():
            first = offsets >> 2
            good = self.valid[first]
            for more in range(1, width // 4):
                good = good & self.valid[first + more]
            outside = ~good
        if outside.any():
            raise Fault(self._complaint(int(addresses[outside][0]), width, doing))
        return offsets

    def _complaint(self, address: int, width: int, doing: str) -> str:
        how = "misaligned " if address % width else ""
        return f"{how}{doing} of {width} bytes at {address:#x} ({self.name} memory)"

    def load(self, addresses: Addresses, width: int, *, signed: bool = False) -> list[Words]:
        """The words of each address, low word first; less than a word is extended to one."""
        offsets = self.offsets(addresses, width, "load")
        if width >= 4:
            first = offsets >> 2
            return [self.words[first + i] for i in range(width // 4)]
        cells = self.bytes[offsets] if width == 1 else self.halves[offsets >> 1]
        if signed:
            return [
                cells.view(np.int8 if width == 1 else np.int16).astype(np.int32).view(np.uint32)
            ]
        return [cells.astype(np.uint32)]

    def store(self, addresses: Addresses, width: int, values: Sequence[Words]) -> None:
        """Write one row of words after the other; of lanes with one address the last one wins."""
        if not self.writable:
            raise Fault(f"store of {width} bytes at {int(addresses[0]):#x} ({self.name} memory)")
        offsets = self.offsets(addresses, width, "store")
        if width >= 4:
            first = offsets >> 2
            for i in range(width // 4):
                self.words[first + i] = values[i]
        elif width == 2:
            self.halves[offsets >> 1] = values[0]
        else:
            self.bytes[offsets] = values[0]

    def read(self, address: int, size: int) -> bytes:
        """Bytes for the host, checked like an access of the program."""
        self._check(address, size, "read")
        offset = address - self.base
        return self.bytes[offset : offset + size].tobytes()

    def write(self, address: int, data: bytes) -> None:
        """Bytes from the host."""
        self._check(address, len(data), "write")
        offset = address - self.base
        self.bytes[offset : offset + len(data)] = np.frombuffer(data, np.uint8)

    def _check(self, address: int, size: int, doing: str) -> None:
        offset = address - self.base
        if offset < 0 or offset + size > len(self.bytes):
            raise Fault(f"{doing} of {size} bytes at {address:#x} ({self.name} memory)")
        if not self.valid[offset // 4 : (offset + size + 3) // 4].all():
            raise Fault(f"{doing} of {size} bytes at {address:#x} ({self.name} memory)")


class GlobalMemory(Window):
    """Global memory with a bump allocator; what is freed may not be touched again."""

    def __init__(self, size: int) -> None:
        super().__init__("global", GLOBAL_BASE, size, valid=False, writable=True)
        self._top = 0x1000
        self._sizes: dict[int, int] = {}

    def allocate(self, size: int, alignment: int = 256) -> int:
        """The address of `size` new bytes, at least one; Fault when all memory is used."""
        offset = -(-self._top // alignment) * alignment
        self._top = offset + max(size, 1) + _GUARD
        if self._top > len(self.bytes):
            raise Fault(
                f"{size} bytes of global memory needed, {len(self.bytes) - offset} are left"
            )
        self.valid[offset // 4 : (offset + max(size, 1) + 3) // 4] = True
        self._sizes[self.base + offset] = size
        return self.base + offset

    def place(self, data: bytes, alignment: int = 256) -> int:
        """The address of a copy of `data`."""
        address = self.allocate(len(data), alignment)
        self.write(address, data)
        return address

    def free(self, address: int) -> None:
        """Take an allocation back; Fault for what is not the address of one."""
        size = self._sizes.pop(address, None)
        if size is None:
            raise Fault(f"free of {address:#x}, which was not allocated")
        offset = address - self.base
        self.valid[offset // 4 : (offset + max(size, 1) + 3) // 4] = False
