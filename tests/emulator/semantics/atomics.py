"""Atomic operations, lane after lane in the order of their numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from emulator.build import Build, Get, _drop_flags
from emulator.errors import Fault
from emulator.lanes import Row, Wide
from emulator.machine import Fragment, Step
from emulator.memory import GLOBAL_HIGH, SHARED_HIGH, Window
from emulator.semantics import mbarriers
from emulator.semantics.addresses import (
    each_active,
    narrow_address,
    take_ordering,
    to_lanes,
    wide_address,
    windows_of,
)
from emulator.semantics.half import BRAIN, HALF, Format

# The new value of an old value and an operand, both without a sign; `bits` is their size.
Update = Callable[[int, int, int], int]


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


def _add_float(kind: Any, whole: Any) -> Update:
    flush = kind is np.float32

    def update(old: int, value: int, _bits: int) -> int:
        pair = np.array([old, value], whole).view(kind)
        if flush:
            tiny = np.abs(pair) < np.float32(2.0**-126)
            pair = np.where(tiny, np.copysign(kind(0), pair), pair)
        return int((pair[:1] + pair[1:]).view(whole)[0])

    return update


def _add_halves(form: Format) -> Update:
    def update(old: int, value: int, _bits: int) -> int:
        pair = np.array([old, value], np.uint32)
        low = form.narrow(form.widen(pair[:1] & 0xFFFF) + form.widen(pair[1:] & 0xFFFF))
        high = form.narrow(form.widen(pair[:1] >> 16) + form.widen(pair[1:] >> 16))
        return int(low[0]) | int(high[0]) << 16

    return update


UPDATES: dict[str, Update] = {
    "ADD": lambda old, value, bits: old + value,
    "MIN": lambda old, value, bits: min(old, value),
    "MAX": lambda old, value, bits: max(old, value),
    "INC": lambda old, value, bits: 0 if old >= value else old + 1,
    "DEC": lambda old, value, bits: value if old == 0 or old > value else old - 1,
    "AND": lambda old, value, bits: old & value,
    "OR": lambda old, value, bits: old | value,
    "XOR": lambda old, value, bits: old ^ value,
    "EXCH": lambda old, value, bits: value,
}
SIGNED_UPDATES: dict[str, Update] = {
    "MIN": lambda old, value, bits: min(signed(old, bits), signed(value, bits)),
    "MAX": lambda old, value, bits: max(signed(old, bits), signed(value, bits)),
    "ADD": UPDATES["ADD"],
}
FLOAT_UPDATES: dict[str, tuple[int, Update]] = {
    "F32": (4, _add_float(np.float32, np.uint32)),
    "F64": (8, _add_float(np.float64, np.uint64)),
    "F16x2": (4, _add_halves(HALF)),
    "BF16x2": (4, _add_halves(BRAIN)),
}
_INTEGERS = {
    "64": (8, False),
    "S64": (8, True),
    "U64": (8, False),
    "S32": (4, True),
    "U32": (4, False),
}


def _operation(b: Build) -> tuple[int, Update]:
    """Bytes of the value, and what is done to it."""
    floating = b.choose(FLOAT_UPDATES, None)
    if floating:
        if not b.take("ADD"):
            raise b.unsupported("operation")
        b.take("FTZ")  # single precision always flushes, here and in the hardware
        if not b.take("RN"):
            raise b.unsupported("direction")
        return floating
    width, sign = b.choose(_INTEGERS, (4, False))
    return width, b.need(SIGNED_UPDATES if sign else UPDATES)


def modify(
    window: Window, places: Wide, width: int, values: list[int], update: Update
) -> list[int]:
    """The old values at the places, each of which becomes the updated one."""
    old = []
    mask = (1 << 8 * width) - 1
    for index, value in enumerate(values):
        place = places[index : index + 1]
        words = window.load(place, width)
        found = int(words[0][0]) | (int(words[1][0]) << 32 if width == 8 else 0)
        new = update(found, value, 8 * width) & mask
        parts = [np.array([new >> 32 * part & 0xFFFFFFFF], np.uint32) for part in range(width // 4)]
        window.store(place, width, parts)
        old.append(found)
    return old


def _values(f: Fragment, gets: list[Get]) -> list[int]:
    """The operands of the active lanes, of one word or two."""
    words = [each_active(f, get(f)).astype(np.uint64) for get in gets]
    total = words[0] | words[1] << np.uint64(32) if len(words) == 2 else words[0]
    return [int(value) for value in total]


def _rows(f: Fragment, values: list[int], width: int) -> list[Row]:
    array = np.array(values, np.uint64)
    shifts = (np.uint64(32 * part) for part in range(width // 4))
    return [to_lanes(f, (array >> shift).astype(np.uint32)) for shift in shifts]


def _compare_and_swap(b: Build, shared: bool) -> Step:
    """CAS gives the old value; CAST gives whether it was swapped, and may be tried again."""
    only_tells = b.take("CAST")
    if only_tells:
        b.take("SPIN")
    width = 8 if b.take("64") else 4
    flag = b.next_is_predicate()
    put_flag = b.put_flags() if flag else None
    target = None if flag and shared else b.next()
    puts = [] if target is None else [b.put(i, target) for i in range(width // 4)]
    address = _address(b, shared)
    first, second = b.next(), b.next()
    compares = [b.bits(first, part) for part in range(width // 4)]
    swaps = [b.bits(second, part) for part in range(width // 4)]

    def run(f: Fragment) -> None:
        places = address(f)
        wanted, values = _values(f, compares), _values(f, swaps)
        old = _in_windows(
            f,
            places,
            width,
            list(zip(wanted, values, strict=True)),
            lambda found, pair: pair[1] if found == pair[0] else found,
        )
        swapped = [int(a == b) for a, b in zip(old, wanted, strict=True)]
        rows = _rows(f, swapped if only_tells else old, width)
        for put, value in zip(puts, rows, strict=False):
            put(f, value)
        if put_flag and shared:
            put_flag(f, _rows(f, swapped, 4)[0] != 0)

    if put_flag and not shared and put_flag is not _drop_flags:
        raise b.unsupported("predicate")
    return run


def _address(b: Build, shared: bool) -> Callable[[Fragment], Wide]:
    """Places of the active lanes, one each; shared ones in their generic form."""
    if shared:
        narrow = narrow_address(b)
        base = np.uint64(SHARED_HIGH << 32)
        return lambda f: each_active(f, narrow(f)).astype(np.uint64) + base
    get = wide_address(b)
    return lambda f: each_active(f, get(f))


def _in_windows(
    f: Fragment,
    places: Wide,
    width: int,
    values: list[tuple[int, int]],
    update: Callable[[int, tuple[int, int]], int],
) -> list[int]:
    """As `modify`, for generic addresses."""
    old = [0] * len(values)
    for chosen, window, some in windows_of(f, places, width, "atomic access"):
        indices = range(len(values)) if chosen is None else np.flatnonzero(chosen).tolist()
        for at, index in enumerate(indices):
            pair = values[index]
            found = modify(
                window,
                some[at : at + 1],
                width,
                [0],
                partial(_with_pair, update, pair),
            )
            old[index] = found[0]
    return old


def _with_pair(
    update: Callable[[int, tuple[int, int]], int],
    pair: tuple[int, int],
    old: int,
    _value: int,
    _bits: int,
) -> int:
    return update(old, pair)


def _atomic(shared: bool, generic: bool, returns: bool) -> Callable[[Build], Step]:
    def build(b: Build) -> Step:
        if not shared:
            if "E" not in b.instruction.modifiers:
                raise b.unsupported("32-bit address")
            take_ordering(b)
        if "CAS" in b.modifiers or "CAST" in b.modifiers:
            b.take("CAS")
            return _compare_and_swap(b, shared)
        if shared and b.take("ARRIVE"):
            return _arrive(b)
        if shared and b.take("POPC"):
            return _count_lanes(b)
        return _update(b)

    def _update(b: Build) -> Step:
        width, update = _operation(b)
        put_flag = b.put_flags() if b.next_is_predicate() else None
        tells = put_flag is not None and put_flag is not _drop_flags
        if tells and not generic:
            raise b.unsupported("predicate")
        target = b.next() if returns else None
        puts = [] if target is None else [b.put(i, target) for i in range(width // 4)]
        address = _address(b, shared)
        operand = b.next()
        gets = [b.bits(operand, part) for part in range(width // 4)]

        def run(f: Fragment) -> None:
            places = address(f)
            values = _values(f, gets)
            done = places >> np.uint64(32) == GLOBAL_HIGH
            if not generic and not shared and not done.all():
                raise Fault(f"atomic access at {int(places[~done][0]):#x}, not in global memory")
            old = [0] * len(values)
            for chosen, window, some in windows_of(f, places, width, "atomic access"):
                if tells and window is not f.warp.block.grid.memory:
                    continue
                indices = range(len(values)) if chosen is None else np.flatnonzero(chosen).tolist()
                found = modify(window, some, width, [values[i] for i in indices], update)
                for index, before in zip(indices, found, strict=True):
                    old[index] = before
            for put, value in zip(puts, _rows(f, old, width), strict=False):
                put(f, value)
            # Operations that only global memory knows say where else they were not done.
            if put_flag and tells:
                put_flag(f, to_lanes(f, done.astype(np.uint32)) != 0)

        return run

    return build


def _arrive(b: Build) -> Step:
    """ATOMS.ARRIVE.64: each lane arrives at an mbarrier of the form before sm_90."""
    if not b.take("64"):
        raise b.unsupported("missing modifier")
    target = b.next()
    puts = [b.put(0, target), b.put(1, target)]
    address = _address(b, True)

    def run(f: Fragment) -> None:
        places = address(f)
        ones = [1] * len(places)
        old = modify(f.warp.block.shared, places, 8, ones, mbarriers.arrive_old)
        for put, value in zip(puts, _rows(f, old, 8), strict=True):
            put(f, value)

    return run


def _count_lanes(b: Build) -> Step:
    """ATOMS.POPC.INC.32: each lane adds one."""
    if not (b.take("INC") and b.take("32")):
        raise b.unsupported("missing modifier")
    target = b.put()
    address = _address(b, True)

    def run(f: Fragment) -> None:
        places = address(f)
        old = modify(f.warp.block.shared, places, 4, [1] * len(places), UPDATES["ADD"])
        target(f, _rows(f, old, 4)[0])

    return run


OPCODES: dict[str, Callable[[Build], Step]] = {
    "ATOM": _atomic(shared=False, generic=True, returns=True),
    "ATOMG": _atomic(shared=False, generic=False, returns=True),
    "ATOMS": _atomic(shared=True, generic=False, returns=True),
    "RED": _atomic(shared=False, generic=True, returns=False),
    "REDG": _atomic(shared=False, generic=False, returns=False),
}
