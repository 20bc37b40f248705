"""Loads and stores of all memories, and copies from global to shared memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from emulator.build import Build, Get, Put
from emulator.errors import Fault
from emulator.lanes import Row, Wide, row
from emulator.machine import Fragment, Step
from emulator.memory import SHARED_HIGH, Window
from emulator.operands import Constant, Operand
from emulator.semantics.addresses import (
    SIZES,
    GetAddress,
    each_active,
    global_window,
    local_places,
    narrow_address,
    of_active,
    take_ordering,
    to_lanes,
    wide_address,
    windows_of,
)

SHARED_BASE = np.uint64(SHARED_HIGH << 32)


def _puts(b: Build, operand: Operand, width: int) -> list[Put]:
    return [b.put(part, operand) for part in range(max(width // 4, 1))]


def _gets(b: Build, operand: Operand, width: int) -> list[Get]:
    return [b.bits(operand, part) for part in range(max(width // 4, 1))]


def _need_wide(b: Build) -> None:
    if "E" not in b.instruction.modifiers:
        raise b.unsupported("32-bit address")


def ldg(b: Build) -> Step:
    _need_wide(b)
    take_ordering(b)
    width, sign = b.choose(SIZES, (4, False))
    puts = _puts(b, b.next(), width)
    if b.next_is_predicate():
        raise b.unsupported("predicate")
    address = wide_address(b)

    def run(f: Fragment) -> None:
        places: Wide = of_active(f, address(f))
        found = global_window(f, places, "load").load(places, width, signed=sign)
        for put, value in zip(puts, found, strict=True):
            put(f, to_lanes(f, value))

    return run


def stg(b: Build) -> Step:
    _need_wide(b)
    take_ordering(b)
    width, _ = b.choose(SIZES, (4, False))
    address = wide_address(b)
    gets = _gets(b, b.next(), width)

    def run(f: Fragment) -> None:
        places: Wide = of_active(f, address(f))
        window = global_window(f, places, "store")
        store(f, window, places, width, [get(f) for get in gets])

    return run


def store(f: Fragment, window: Window, places: Wide, width: int, values: list[Row]) -> None:
    """Write rows at the places of the active lanes; at a shared place the last lane wins."""
    if len(places) == 1 and f.count > 1:
        last = int(np.flatnonzero(f.mask)[-1])
        values = [value if len(value) == 1 else value[last : last + 1] for value in values]
    else:
        values = [of_active(f, value) for value in values]
    window.store(places, width, values)


def _generic_load(b: Build) -> Step:
    _need_wide(b)
    take_ordering(b)
    width, sign = b.choose(SIZES, (4, False))
    puts = _puts(b, b.next(), width)
    address = wide_address(b)

    def run(f: Fragment) -> None:
        places: Wide = each_active(f, address(f))
        found = [np.zeros(len(places), np.uint32) for _ in puts]
        for chosen, window, some in windows_of(f, places, width, "load"):
            loaded = window.load(some, width, signed=sign)
            for total, part in zip(found, loaded, strict=True):
                total[slice(None) if chosen is None else chosen] = part
        for put, value in zip(puts, found, strict=True):
            put(f, to_lanes(f, value))

    return run


def _generic_store(b: Build) -> Step:
    _need_wide(b)
    take_ordering(b)
    width, _ = b.choose(SIZES, (4, False))
    address = wide_address(b)
    gets = _gets(b, b.next(), width)

    def run(f: Fragment) -> None:
        places: Wide = each_active(f, address(f))
        values = [each_active(f, get(f)) for get in gets]
        for chosen, window, some in windows_of(f, places, width, "store"):
            part = [value if chosen is None else value[chosen] for value in values]
            window.store(some, width, part)

    return run


def lds(b: Build) -> Step:
    width, sign = b.choose(SIZES, (4, False))
    puts = _puts(b, b.next(), width)
    address = narrow_address(b)

    def run(f: Fragment) -> None:
        places: Wide = of_active(f, address(f)) + SHARED_BASE
        found = f.warp.block.shared.load(places, width, signed=sign)
        for put, value in zip(puts, found, strict=True):
            put(f, to_lanes(f, value))

    return run


def sts(b: Build) -> Step:
    width, _ = b.choose(SIZES, (4, False))
    address = narrow_address(b)
    gets = _gets(b, b.next(), width)

    def run(f: Fragment) -> None:
        places: Wide = of_active(f, address(f)) + SHARED_BASE
        store(f, f.warp.block.shared, places, width, [get(f) for get in gets])

    return run


def ldl(b: Build) -> Step:
    take_ordering(b)
    width, sign = b.choose(SIZES, (4, False))
    puts = _puts(b, b.next(), width)
    address = narrow_address(b)

    def run(f: Fragment) -> None:
        offsets: Row = each_active(f, address(f))
        places = local_places(f, offsets, width, "load")
        found = f.warp.local.window.load(places, width, signed=sign)
        for put, value in zip(puts, found, strict=True):
            put(f, to_lanes(f, value))

    return run


def stl(b: Build) -> Step:
    take_ordering(b)
    width, _ = b.choose(SIZES, (4, False))
    address = narrow_address(b)
    gets = _gets(b, b.next(), width)

    def run(f: Fragment) -> None:
        offsets: Row = each_active(f, address(f))
        places = local_places(f, offsets, width, "store")
        values = [each_active(f, get(f)) for get in gets]
        f.warp.local.window.store(places, width, values)

    return run


def ldc(b: Build) -> Step:
    """A constant: into registers or uniform ones, of a bank with a fixed number."""
    width, sign = b.choose(SIZES, (4, False))
    target, operand = b.next(), b.next()
    if not isinstance(operand, Constant) or operand.signs or operand.suffixes:
        raise b.unsupported(f"operand {operand}")
    puts = _puts(b, target, width)
    if width >= 4:
        gets = [b.constant(operand, part) for part in range(width // 4)]

        def run(f: Fragment) -> None:
            values = [get(f) for get in gets]
            for put, value in zip(puts, values, strict=True):
                put(f, value)

        return run
    bank, offset = operand.bank, operand.offset
    if not isinstance(bank, int):
        raise b.unsupported(f"operand {operand}")
    index = b.plain(operand.index) if operand.index is not None else None
    put, mask = puts[0], (1 << 8 * width) - 1

    def run_narrow(f: Fragment) -> None:
        at = (index(f) if index else row(0)) + np.uint32(offset & 0xFFFFFFFF)
        if (at % width).any():
            raise Fault(f"misaligned load of {width} bytes from constant bank {bank}")
        words = f.warp.block.grid.gather(bank, at & ~np.uint32(3), f)
        value = words >> (at & 3) * 8 & mask
        if sign:
            up = 32 - 8 * width
            value = ((value << up).view(np.int32) >> up).view(np.uint32)
        put(f, value)

    return run_narrow


def ldgsts(b: Build) -> Step:
    """A copy from global to shared memory, which is made at once.

    Of an address that is not aligned, with ZFILL, the low bits are the number of bytes at the end
    that are zeros instead; where the predicate is false all of them are.
    """
    _need_wide(b)
    take_ordering(b)
    b.take("BYPASS", "ACCESS")
    zero_fill = b.take("ZFILL")
    width, _ = b.choose({"128": (16, False), "64": (8, False)}, (4, False))
    target, source = narrow_address(b), wide_address(b)
    copied = b.flags() if b.operands else None
    if copied and not zero_fill:
        raise b.unsupported("predicate")

    def run(f: Fragment) -> None:
        places: Wide = each_active(f, target(f)) + SHARED_BASE
        origins: Wide = each_active(f, source(f))
        wanted = each_active(f, copied(f)) if copied else np.ones(len(places), np.bool_)
        zeros = origins % np.uint64(width) if zero_fill else np.zeros(1, np.uint64)
        begins = origins - zeros
        values = [np.zeros(len(places), np.uint32) for _ in range(width // 4)]
        if wanted.any():
            found = global_window(f, begins[wanted], "load").load(begins[wanted], width)
            for index, part in enumerate(found):
                values[index][wanted] = part
                kept = (width - zeros.astype(np.int64) - 4 * index).clip(0, 4) * 8
                ones = (np.uint64(1) << kept.astype(np.uint64)) - np.uint64(1)
                values[index] &= ones.astype(np.uint32)
        f.warp.block.shared.store(places, width, values)

    return run


def qspc(b: Build) -> Step:
    """Whether a generic address is in shared memory (S), or in that of another block (D)."""
    _need_wide(b)
    b.take("E")
    shared = b.need({"S": True, "D": False})
    put_flags = b.put_flags()
    put = b.put()
    address: GetAddress = wide_address(b)

    def run(f: Fragment) -> None:
        found = address(f) >> np.uint64(32) == SHARED_HIGH
        put_flags(f, found if shared else found & False)
        put(f, found.astype(np.uint32))

    return run


OPCODES: dict[str, Callable[[Build], Step]] = {
    "LDG": ldg,
    "STG": stg,
    "LD": _generic_load,
    "ST": _generic_store,
    "LDS": lds,
    "STS": sts,
    "LDL": ldl,
    "STL": stl,
    "LDC": ldc,
    "LDCU": ldc,
    "ULDC": ldc,
    "LDGSTS": ldgsts,
    "QSPC": qspc,
}
