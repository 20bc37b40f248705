"""Relocations that a driver applies when it loads an executable cubin.

A row says which bits of the field take which bits of the value: S + A, where A is the addend of
SHT_RELA or, in SHT_REL, what the field holds. Names are those that cuobjdump prints.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Piece:
    """`bits` bits of the value, from bit `value` on, go to the field from bit `field` on."""

    field: int
    bits: int
    value: int


@dataclass(frozen=True)
class Kind:
    """One type of relocation; `size` are the bytes of the field, from r_offset on."""

    name: str
    size: int
    pieces: tuple[Piece, ...]


def _kind(name: str, size: int, *pieces: tuple[int, int, int]) -> Kind:
    return Kind(name, size, tuple(Piece(*piece) for piece in pieces))


KINDS = {
    1: _kind("R_CUDA_32", 4, (0, 32, 0)),
    2: _kind("R_CUDA_64", 8, (0, 64, 0)),
    3: _kind("R_CUDA_G32", 4, (0, 32, 0)),
    4: _kind("R_CUDA_G64", 8, (0, 64, 0)),
    35: _kind("R_CUDA_FUNC_DESC_64", 8, (0, 64, 0)),
    56: _kind("R_CUDA_ABS32_LO_32", 16, (32, 32, 0)),
    57: _kind("R_CUDA_ABS32_HI_32", 16, (32, 32, 32)),
    58: _kind("R_CUDA_ABS47_34", 16, (34, 47, 2)),
    62: _kind("R_CUDA_FUNC_DESC32_LO_32", 16, (32, 32, 0)),
    63: _kind("R_CUDA_FUNC_DESC32_HI_32", 16, (32, 32, 32)),
    75: _kind("R_CUDA_ABS55_16_34", 16, (16, 8, 2), (34, 47, 10)),
}
# Eight numbers each for the bytes of an address, low byte first.
for _first, _name in ((76, "R_CUDA_8"), (84, "R_CUDA_G8"), (92, "R_CUDA_FUNC_DESC_8")):
    for _byte in range(8):
        KINDS[_first + _byte] = _kind(f"{_name}_{8 * _byte}", 1, (0, 8, 8 * _byte))

# Marks of instructions for whoever patches code; they fill no field.
MARKS = {0: "R_CUDA_NONE", 68: "R_CUDA_YIELD_OPCODE9_0", 69: "R_CUDA_YIELD_CLEAR_PRED4_87"}


def stored_value(kind: Kind, field: int) -> int:
    """The addend that a field of SHT_REL holds."""
    value = 0
    for piece in kind.pieces:
        value |= (field >> piece.field & (1 << piece.bits) - 1) << piece.value
    return value


def patch(kind: Kind, field: int, value: int) -> int:
    """The field with the value in place."""
    for piece in kind.pieces:
        mask = (1 << piece.bits) - 1
        field = field & ~(mask << piece.field) | (value >> piece.value & mask) << piece.field
    return field
