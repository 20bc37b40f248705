"""Functions that a driver supplies, done in Python: vprintf, malloc, free and __assertfail.

Their arguments are in registers from R4 on, 64-bit ones in pairs; R20 and R21 have the return
address.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

import numpy as np

from emulator.errors import Fault, Unsupported
from emulator.lanes import Wide, spread, wide
from emulator.machine import Fragment
from emulator.semantics.addresses import windows_of

_FORMAT = re.compile(r"%([-+ #0]*)(\*|\d+)?(\.(?:\*|\d+))?(hh|h|ll|l|z|t|j)?([diuxXocsfFgGeEpa%])")


def return_address(f: Fragment) -> Wide:
    return wide(f.R[20], f.R[21])


def _lanes(f: Fragment) -> list[int]:
    return [lane for lane in range(f.warp.size) if f.bits >> lane & 1]


def _argument(f: Fragment, lane: int, register: int) -> int:
    """A 64-bit argument of one lane."""
    low, high = (spread(f.R[register + i], f.warp.size)[lane] for i in range(2))
    return int(low) | int(high) << 32


def _answer(f: Fragment, values: list[int], words: int) -> None:
    """The result of each lane in R4, or in R4 and R5."""
    for part in range(words):
        found = spread(f.R[4 + part], f.warp.size).copy()
        found[f.mask] = np.array([value >> 32 * part & 0xFFFFFFFF for value in values], np.uint32)
        f.R[4 + part] = found


def _load(f: Fragment, lane: int, address: int, width: int) -> int:
    """A number at a generic address of one lane."""
    saved = f.mask, f.bits, f.count
    f.mask, f.bits, f.count = np.arange(f.warp.size) == lane, 1 << lane, 1
    try:
        place = np.array([address], np.uint64)
        [(_, window, some)] = windows_of(f, place, width, "load")
        words = window.load(some, width)
    finally:
        f.mask, f.bits, f.count = saved
    return sum(int(word[0]) << 32 * i for i, word in enumerate(words))


def _text(f: Fragment, lane: int, address: int) -> str:
    found = bytearray()
    while character := _load(f, lane, address + len(found), 1):
        found.append(character)
    return found.decode("utf-8", "replace")


def vprintf(f: Fragment) -> None:
    results = []
    for lane in _lanes(f):
        form = _text(f, lane, _argument(f, lane, 4))
        text, count = _formatted(f, lane, form, _argument(f, lane, 6))
        f.warp.block.grid.printed.append(text)
        results.append(count)
    _answer(f, results, 1)


def _formatted(f: Fragment, lane: int, form: str, at: int) -> tuple[str, int]:
    """The text, and the number of its arguments, which lie aligned to their size."""
    parts: list[str] = []
    count = 0

    def take(width: int) -> int:
        nonlocal at, count
        at = -(-at // width) * width
        value = _load(f, lane, at, width)
        at += width
        count += 1
        return value

    end = 0
    for match in _FORMAT.finditer(form):
        parts.append(form[end : match.start()])
        end = match.end()
        flags, width, precision, size, kind = match.groups()
        if kind == "%":
            parts.append("%")
            continue
        if width == "*" or precision == ".*" or kind == "a":
            raise Unsupported(f"format '{match[0]}' of vprintf")
        spec = f"%{flags}{width or ''}{precision or ''}"
        parts.append(_one(f, lane, spec, size, kind, take))
    return "".join(parts) + form[end:], count


def _one(
    f: Fragment, lane: int, spec: str, size: str | None, kind: str, take: Callable[[int], int]
) -> str:
    if kind in "fFgGeE":
        return (spec + kind) % struct.unpack("<d", struct.pack("<Q", take(8)))[0]
    if kind == "s":
        return (spec + "s") % _text(f, lane, take(8))
    if kind == "p":
        return (spec + "s") % hex(take(8))
    if kind == "c":
        return (spec + "c") % (take(4) & 0xFF)
    bits = {"hh": 8, "h": 16, None: 32}.get(size, 64)
    value = take(8 if bits == 64 else 4) & (1 << bits) - 1
    if kind in "di" and value >> bits - 1:
        value -= 1 << bits
    return (spec + ("d" if kind in "diu" else kind)) % value


def malloc(f: Fragment) -> None:
    memory = f.warp.block.grid.memory
    _answer(f, [memory.allocate(_argument(f, lane, 4), 16) for lane in _lanes(f)], 2)


def free(f: Fragment) -> None:
    for lane in _lanes(f):
        address = _argument(f, lane, 4)
        if address:
            f.warp.block.grid.memory.free(address)


def assertfail(f: Fragment) -> None:
    """Print what a failed assertion prints, and end the launch."""
    warp, grid = f.warp, f.warp.block.grid
    for lane in _lanes(f):
        message, file = (_text(f, lane, _argument(f, lane, register)) for register in (4, 6))
        line = int(spread(f.R[8], warp.size)[lane])
        function = _text(f, lane, _argument(f, lane, 10))
        block = ",".join(map(str, warp.block.index))
        thread = ",".join(str(int(axis[lane])) for axis in warp.thread)
        grid.printed.append(
            f"{file}:{line}: {function}: block: [{block}], thread: [{thread}] "
            f"Assertion `{message}` failed."
        )
    raise Fault("assertion failed")


HOOKS: dict[str, Callable[[Fragment], None]] = {
    "vprintf": vprintf,
    "malloc": malloc,
    "free": free,
    "__assertfail": assertfail,
}
