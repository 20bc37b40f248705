"""Addresses of memory instructions, and which window each of them is in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from emulator.build import Build, Get
from emulator.errors import Fault
from emulator.lanes import Flags, Row, Wide, spread, wide
from emulator.machine import Fragment
from emulator.memory import (
    CODE_HIGH,
    GLOBAL_HIGH,
    LOCAL_HIGH,
    PARAMETER_HIGH,
    SHARED_HIGH,
    Window,
)
from emulator.operands import Address, Register

GetAddress = Callable[[Fragment], Wide]

# Where caches and other threads may see an access; execution here is in order.
ORDERING = (
    "E",
    "STRONG",
    "WEAK",
    "CONSTANT",
    "GPU",
    "SM",
    "SYS",
    "CTA",
    "VC",
    "EF",
    "EL",
    "LU",
    "NA",
    "PRIVATE",
    "MMIO",
    "LTC64B",
    "LTC128B",
    "LTC256B",
)
SIZES = {
    "U8": (1, False),
    "S8": (1, True),
    "U16": (2, False),
    "S16": (2, True),
    "64": (8, False),
    "128": (16, False),
}
_SCALES = {"X4": 4, "X8": 8, "X16": 16}


def take_ordering(b: Build) -> None:
    """Take all modifiers that say how an access is ordered and cached."""
    for name in ORDERING:
        b.take(name)


def wide_address(b: Build) -> GetAddress:
    """A 64-bit address: a pair of registers, a pair of uniform ones, or their sum."""
    operand = b.next()
    if not isinstance(operand, Address) or operand.suffixes:
        raise b.unsupported(f"operand {operand}")
    offset = np.uint64(operand.offset & 0xFFFFFFFFFFFFFFFF)
    base, uniform, descriptor = operand.base, operand.uniform, operand.descriptor
    parts: list[GetAddress] = []
    if base is not None:
        parts.append(_base(b, base, uniform is not None))
    if uniform is not None:
        low, high = b.bits(uniform), b.bits(uniform, 1)
        parts.append(lambda f: wide(low(f), high(f)))
    if not parts:
        return lambda f: np.array([offset], np.uint64)
    if descriptor is not None:
        parts[0] = _described(b, descriptor, parts[0])
    if len(parts) == 1:
        part = parts[0]
        return (lambda f: part(f) + offset) if operand.offset else part
    first, second = parts
    return lambda f: first(f) + second(f) + offset


def _base(b: Build, base: Register, has_uniform: bool) -> GetAddress:
    get = b.bits(base)
    if base.suffixes == ("U32",) and has_uniform:
        return lambda f: get(f).astype(np.uint64)
    if base.suffixes not in ((), ("64",)):
        raise b.unsupported(f"operand {base}")
    high = b.bits(base, 1)
    return lambda f: wide(get(f), high(f))


def _described(b: Build, descriptor: Register, address: GetAddress) -> GetAddress:
    """The address, after a look at the descriptor: it must be the one of constant bank 0."""
    low, high = b.bits(descriptor), b.bits(descriptor, 1)

    def get(f: Fragment) -> Wide:
        found = int(low(f)[0]) | int(high(f)[0]) << 32
        if found != f.warp.block.grid.descriptor:
            raise Fault(f"{found:#x} is not the descriptor of global memory")
        return address(f)

    return get


def narrow_address(b: Build) -> Get:
    """A 32-bit address, in shared or local memory."""
    operand = b.next()
    if not isinstance(operand, Address) or operand.suffixes or operand.descriptor is not None:
        raise b.unsupported(f"operand {operand}")
    offset = np.uint32(operand.offset & 0xFFFFFFFF)
    parts: list[Get] = []
    if operand.base is not None:
        get, scale = b.bits(operand.base), operand.base.suffixes
        if scale:
            if len(scale) > 1 or scale[0] not in _SCALES:
                raise b.unsupported(f"operand {operand}")
            factor = np.uint32(_SCALES[scale[0]])
            parts.append(lambda f: get(f) * factor)
        else:
            parts.append(get)
    if operand.uniform is not None:
        parts.append(b.bits(operand.uniform))
    if not parts:
        constant = np.array([offset], np.uint32)
        return lambda f: constant
    if len(parts) == 1:
        part = parts[0]
        return lambda f: part(f) + offset
    first, second = parts
    return lambda f: first(f) + second(f) + offset


def of_active(f: Fragment, value: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The elements of the fragment's lanes; one that all share stays one."""
    if len(value) == 1 or f.count == f.warp.size:
        return value
    return value[f.mask]


def each_active(f: Fragment, value: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An element for each of the fragment's lanes."""
    return spread(value, f.warp.size)[f.mask]


def to_lanes(f: Fragment, value: Row) -> Row:
    """A row, of the elements of the fragment's lanes."""
    if len(value) == 1 or f.count == f.warp.size:
        return value
    full = np.zeros(f.warp.size, np.uint32)
    full[f.mask] = value
    return full


def global_window(f: Fragment, addresses: Wide, doing: str) -> Window:
    """Global memory; Fault where one of the addresses is in another window."""
    wrong = addresses >> np.uint64(32) != GLOBAL_HIGH
    if wrong.any():
        raise Fault(f"{doing} at {int(addresses[wrong][0]):#x}, which is not in global memory")
    return f.warp.block.grid.memory


def local_places(f: Fragment, offsets: Row, width: int, doing: str) -> Wide:
    """Where in a warp's local memory the threads' offsets are, for its active lanes.

    Fault where an access leaves the memory of its thread, or is misaligned.
    """
    local = f.warp.local
    lanes = each_active(f, f.warp.lane)
    found = offsets.astype(np.uint64)
    wrong = found + np.uint64(width) > np.uint64(local.size)
    if wrong.any():
        address = int(found[wrong][0])
        raise Fault(f"{doing} of {width} bytes at {address:#x} of {local.size} (local memory)")
    return found + lanes.astype(np.uint64) * np.uint64(local.stride)


def windows_of(
    f: Fragment, addresses: Wide, width: int, doing: str
) -> Sequence[tuple[Flags | None, Window, Wide]]:
    """For each window that generic addresses are in: whose they are, it, and the addresses in it.

    None stands for all addresses. There is one address for each active lane.
    """
    highs = (addresses >> np.uint64(32)).tolist()
    found: list[tuple[Flags | None, Window, Wide]] = []
    for high in dict.fromkeys(highs):
        chosen = (
            None if len(set(highs)) == 1 else np.array([candidate == high for candidate in highs])
        )
        some = addresses if chosen is None else addresses[chosen]
        if high == LOCAL_HIGH:
            lanes = each_active(f, f.warp.lane)
            if chosen is not None:
                lanes = lanes[chosen]
            found.append((chosen, f.warp.local.window, _local(f, some, lanes, width, doing)))
        else:
            found.append((chosen, _window(f, high, some, doing), some))
    return found


def _local(f: Fragment, addresses: Wide, lanes: npt.NDArray[Any], width: int, doing: str) -> Wide:
    offsets = addresses & np.uint64(0xFFFFFFFF)
    local = f.warp.local
    if (offsets + np.uint64(width) > np.uint64(local.size)).any():
        raise Fault(f"{doing} of {width} bytes beyond {local.size} bytes of local memory")
    return offsets + lanes.astype(np.uint64) * np.uint64(local.stride)


def _window(f: Fragment, high: int, addresses: Wide, doing: str) -> Window:
    grid = f.warp.block.grid
    if high == GLOBAL_HIGH:
        return grid.memory
    if high == SHARED_HIGH:
        return f.warp.block.shared
    if high == CODE_HIGH:
        return grid.code
    if high == PARAMETER_HIGH:
        return grid.parameters
    raise Fault(f"{doing} at {int(addresses[0]):#x}, where there is no memory")
