"""Every relocation type at every edge of the image, against its formula."""

from __future__ import annotations

from random import Random

import pytest
from helpers.contents import patched as patched_all
from helpers.cubin_builder import (
    IN_CONSTANT,
    Cubin,
    Section,
    Symbol,
    one_kernel,
)
from helpers.relocs_reference import FIELDS, Patch, pack

import pylink

# Types that the reference of plain fields leaves out: formula, first bit, bits.
REST: dict[int, tuple[str, int, int]] = {
    20: ("V", 40, 5),
    21: ("V", 26, 6),
    27: ("V", 31, 6),
    26: ("V", 49, 9),
    28: ("V", 47, 2),
    22: ("V>>2", 32, 13),
    23: ("V>>2", 47, 13),
    29: ("V>>2", 41, 13),
    30: ("V>>2", 45, 13),
    51: ("V>>2", 36, 13),
    37: ("bank<<16|V", 37, 21),
}
BYTES = {first + n: n for first in (76, 84, 104) for n in range(8)}
NO_CHANGE = (68, 69, 114)
UNKNOWN = (0, 6, 7, 8, 9, 31, 40, 47, 48, 49, 52, 53, 58, 61, 67, 75, 92, 99, 101, 116, 125)


def field(formula: str, value: int, bank: int) -> int:
    """The bits of a field before they are cut to its width."""
    value %= 2**64
    if formula == "V":
        return value
    if formula == "V>>32":
        return value >> 32
    if formula == "V>>2":
        return value >> 2
    low = {"bank<<14|V>>2": 14, "bank<<16|V": 16, "bank<<17|V": 17}[formula]
    return bank << low | (value >> 2 if low == 14 else value) & (1 << low) - 1


def patched(image: bytes, patch: Patch) -> bytes:
    bad, found = patched_all(image, pack([patch]))
    assert bad == -1
    return found


@pytest.mark.parametrize("type_", sorted(FIELDS | REST))
def test_field(type_: int) -> None:
    formula, first, bits = (FIELDS | REST)[type_]
    mask = (1 << bits) - 1
    rng = Random(type_)
    size = (first + bits + 7) // 8
    for value in (0, 1, 4, mask, 2**32, 2**63, 2**64 - 1, rng.getrandbits(64)):
        for bank in (0, 3, 17):
            image = rng.randbytes(size)
            word = int.from_bytes(image, "little")
            new = word & ~(mask << first) | (field(formula, value, bank) & mask) << first
            assert patched(image, (0, value, type_, bank, 0)) == new.to_bytes(size, "little")
    # One byte less and the field would not fit.
    assert patched_all(bytes(size - 1), pack([(0, 1, type_, 0, 0)]))[0] == 0


@pytest.mark.parametrize("type_", [1, 2, 3, 55, 56, 112])
def test_the_field_holds_the_addend_of_implicit_relocations(type_: int) -> None:
    _, first, bits = FIELDS[type_]
    for addend, value in ((8, 16), (2**bits - 4, 8)):
        image = (addend << first).to_bytes(16, "little")
        word = int.from_bytes(patched(image, (0, value, type_, 0, 1)), "little")
        assert word >> first & (1 << bits) - 1 == (addend + value) % 2**bits


@pytest.mark.parametrize(("type_", "position"), BYTES.items())
def test_bytes(type_: int, position: int) -> None:
    value = 0x8877665544332211
    assert patched(b"a?b", (1, value, type_, 0, 0)) == b"a%cb" % (value >> 8 * position & 0xFF)


def test_a_field_in_two_parts() -> None:
    """Type 24: bit 18 goes to bit 26, the others to bit 28."""
    ones = int.from_bytes(patched(bytes(8), (0, 2**64 - 1, 24, 31, 0)), "little")
    assert ones == 0x3FFFF << 28 | 1 << 26
    low = int.from_bytes(patched(bytes(8), (0, 0x10, 24, 3, 0)), "little")
    assert low == (3 << 14 | 4) << 28


@pytest.mark.parametrize("type_", NO_CHANGE)
def test_marks_change_nothing(type_: int) -> None:
    assert patched(b"12345678", (0, 2**64 - 1, type_, 3, 0)) == b"12345678"


@pytest.mark.parametrize("type_", UNKNOWN)
def test_types_without_a_formula_are_refused(type_: int) -> None:
    assert patched_all(b"12345678", pack([(0, 1, type_, 0, 0)]))[0] == 0


def constants() -> tuple[Cubin, int]:
    """A kernel and a constant at offset 8 of bank 3."""
    cubin = one_kernel()
    bank = cubin.section(Section(".nv.constant3", 0x70000067, bytes(16), 2))
    symbol = cubin.symbol(Symbol("c", other=IN_CONSTANT, section=bank, value=8, size=4))
    return cubin, symbol


def code_of(cubin: Cubin) -> bytes:
    image = pylink.link([cubin.build()], arch="sm_80").image
    start = image.index(b"code begins here")
    return image[start : start + 128]


@pytest.mark.parametrize("implicit", [True, False])
def test_constants_take_their_address_in_the_bank(implicit: bool) -> None:
    cubin, symbol = constants()
    text = cubin.find(".text.kernel")
    addend = 4
    field_ = addend if implicit else 77
    code = b"code begins here" + (field_ << 32).to_bytes(16, "little") + bytes(96)
    cubin.sections[text - 1].data = code
    cubin.relocate(text, [(16, 55, symbol, addend)], implicit=implicit)
    assert code_of(cubin)[16:32] == ((8 + addend) << 32).to_bytes(16, "little")
