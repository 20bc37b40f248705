"""Two references of patches: a naive one, and one with numpy.

A patch is (offset, value, type, bank, implicit), packed as PATCH. The names of types end in the
first bit of the field, such as 26 in R_CUDA_ABS32_LO_26 (pylink/facts/relocations.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct

import numpy as np

from pylink._native.tables import Patches

PATCH = Struct("<QQIHH")
Patch = tuple[int, int, int, int, int]

# By relocation type: formula, first bit, number of bits.
FIELDS: dict[int, tuple[str, int, int]] = {}
for formula, bits, places in (
    ("V", 32, {1: 0, 3: 0, 5: 26, 12: 23, 42: 20, 55: 32, 70: 0, 103: 0}),
    ("V", 32, {10: 26, 13: 23, 43: 20, 56: 32, 112: 32}),
    ("V", 64, {2: 0, 4: 0, 102: 0}),
    ("V>>32", 32, {11: 26, 14: 23, 44: 20, 57: 32, 71: 0, 113: 32}),
    ("V", 24, {15: 26, 16: 23, 45: 20, 60: 32, 74: 40}),
    ("V", 16, {17: 26, 18: 23, 46: 20, 59: 32}),
    ("V", 20, {100: 44}),
    ("V", 8, {19: 32}),
    ("V>>2", 14, {65: 40}),
    ("bank<<14|V>>2", 19, {25: 23, 38: 26, 50: 20, 64: 40}),
    ("bank<<16|V", 21, {36: 26, 39: 23, 54: 20, 66: 38}),
    ("bank<<17|V", 22, {115: 37}),
):
    FIELDS.update({type_: (formula, first, bits) for type_, first in places.items()})


def pack(patches: Iterable[Patch]) -> Patches:
    """Return the table of patches for the native function."""
    return Patches(b"".join(PATCH.pack(*patch) for patch in patches))


def patch_reference(image: bytearray, patches: Iterable[Patch]) -> None:
    """Write every patch, one after the other."""
    for offset, symbol, type_, bank, implicit in patches:
        formula, first, bits = FIELDS[type_]
        word = int.from_bytes(image[offset : offset + 8], "little")
        mask = (1 << bits) - 1
        value = symbol
        if implicit and formula != "V>>32":
            value += (word >> first & mask) << (2 if formula == "V>>2" else 0)
        if formula == "V>>32":
            value = symbol % 2**64 >> 32
        elif formula == "V>>2":
            value = value % 2**64 >> 2
        elif formula.startswith("bank"):
            low = 14 if formula.endswith("2") else 17 if "17" in formula else 16
            value = bank << low | (value >> (2 if low == 14 else 0)) % 2**low
        word = word & ~(mask << first) | (value & mask) << first
        image[offset : offset + 8] = word.to_bytes(8, "little")


def patch_numpy(image: bytearray, table: bytes) -> None:
    """Write explicit patches of the formulas V and V>>32, at different offsets, multiples of 8."""
    rows = np.frombuffer(
        table, dtype=[("offset", "<u8"), ("value", "<u8"), ("type", "<u4"), ("rest", "<u4")]
    )
    words = np.frombuffer(image, dtype="<u8")
    at = rows["offset"] >> np.uint64(3)
    high, first, mask = _COLUMNS[:, rows["type"]]
    field = (rows["value"] >> high << first) & mask
    words[at] = words[at] & ~mask | field


def _columns() -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    """Return, by type, bits by which a value is shifted right, then left, and the field's mask."""
    columns = np.zeros((3, 128), dtype=np.uint64)
    for type_, (formula, first, bits) in FIELDS.items():
        columns[:, type_] = (32 if formula == "V>>32" else 0, first, (1 << bits) - 1 << first)
    return columns


_COLUMNS = _columns()
