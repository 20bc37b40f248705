"""Code of one release becomes what nvlink of another makes of it, and all offsets follow."""

from __future__ import annotations

import random
import struct

import pytest
from helpers import exits_builder as builder
from helpers.exits_builder import Kernel, Slot, branch, build, exit_, fence, plain_slot
from helpers.exits_code import NOP
from helpers.exits_native import rewrite_exits as rewrite
from helpers.exits_reference import Object
from helpers.exits_update import ADDS, FENCES, GUARD, UNGUARD, WORDS, update, with_bits

from pylink.facts.kernelmodes import (
    UPDATE_AWAITED_FENCES,
    UPDATE_BARE_WORDS,
    UPDATE_GUARD_BSYNC,
    UPDATE_SHORT_ADDS,
    UPDATE_UNGUARD_BSYNC,
)

QUICK = with_bits(NOP, 104, 119, 0x0FE2)
CAREFUL, CARELESS = 0x3FDE, 0x0FC0
MODES = [GUARD, UNGUARD, ADDS, FENCES, WORDS, GUARD | WORDS, ADDS | FENCES | GUARD | WORDS]


def bsync(kind: int = 2, barrier: int = 0, control: int = 0x0FEA) -> bytes:
    """BSYNC of a barrier register: plain, RELIABLE (1) or RECONVERGENT (2)."""
    word = (0x7941 | barrier << 16 | kind << 72).to_bytes(16, "little")
    return with_bits(word, 104, 119, control)


def guarded(word: bytes, nop: bytes = QUICK) -> Slot:
    kind, barrier = word[9] & 3, word[2]
    body = bytes((1, 9, 2 if kind == 2 else 4, 10, 0xF8, 0, kind == 2, 0, 0, 0, 2 * barrier))
    return builder.expanded_slot([nop, word], body + bytes(5))


def add(form: int = 0x210, *, carry: bool = False, control: int = CAREFUL) -> bytes:
    """IADD3 of two operands; with `carry` IADD3.X."""
    word = (0x7000 | form | 0x07FFE0FF << 64).to_bytes(16, "little")
    if carry:
        word = with_bits(with_bits(word, 74, 74, 1), 80, 90, 0x7F << 1 | 1)
        word = with_bits(word, 77, 80, 15)
    return with_bits(word, 104, 119, control)


def careful(slot: Slot) -> Slot:
    """The slot as ptxas -O0 up to 13.2 schedules it."""
    return Slot([with_bits(word, 104, 127, CAREFUL) for word in slot.words], slot.record)


def text_of(image: bytes, name: str = "k") -> list[bytes]:
    data = Object(image).by_name[f".text.{name}"].data
    words = [data[at : at + 16] for at in range(0, len(data), 16)]
    while words[-1] == NOP:
        words.pop()
    return words[:-1]


def test_the_bits_of_modes_are_those_of_the_reference() -> None:
    assert [GUARD, UNGUARD, ADDS, FENCES, WORDS] == [
        UPDATE_GUARD_BSYNC,
        UPDATE_UNGUARD_BSYNC,
        UPDATE_SHORT_ADDS,
        UPDATE_AWAITED_FENCES,
        UPDATE_BARE_WORDS,
    ]


@pytest.mark.parametrize("kind", [1, 2])
@pytest.mark.parametrize("barrier", [0, 5, 15])
def test_a_nop_comes_to_stand_in_front_of_a_bsync(kind: int, barrier: int) -> None:
    word = bsync(kind, barrier)
    image = rewrite(build([Kernel("k", [plain_slot(), plain_slot(word), exit_()])]), GUARD)
    assert text_of(image) == [builder.MOVE, QUICK, word, builder.EXIT]
    capsule = Object(image).by_name[".nv.capmerc.text.k"].data
    assert capsule[16:34] == guarded(word).record
    assert struct.unpack_from("<I", capsule, 8) == (4,)  # slots: as many as before


def test_a_plain_bsync_gets_none() -> None:
    image = build([Kernel("k", [plain_slot(bsync(0)), exit_()])])
    assert rewrite(image, GUARD) is image


def test_a_bsync_never_gets_a_second_one() -> None:
    image = build([Kernel("k", [guarded(bsync()), exit_()])])
    assert rewrite(image, GUARD) is image


@pytest.mark.parametrize("control", [CAREFUL, CARELESS])
def test_a_nop_of_unscheduled_code_waits_as_its_bsync(control: int) -> None:
    word = bsync(control=control)
    image = rewrite(build([Kernel("k", [plain_slot(word)])]), GUARD)
    assert text_of(image) == [with_bits(NOP, 104, 119, control), word]


def test_the_nops_go_where_the_release_has_none() -> None:
    kernel = Kernel("k", [branch(16), guarded(bsync(1, 3)), exit_()], rows=[(16, 3), (48, 4)])
    bare = Kernel("k", [branch(0), plain_slot(bsync(1, 3)), exit_()], rows=[(16, 3), (32, 4)])
    assert text_of(rewrite(build([kernel]), UNGUARD)) == text_of(build([bare]))
    with_nop = rewrite(build([bare]), GUARD)
    assert text_of(rewrite(with_nop, UNGUARD)) == text_of(build([bare]))


def test_jumps_reach_the_nop_and_lists_the_bsync() -> None:
    kernel = Kernel("k", [branch(16), plain_slot(), plain_slot(bsync()), exit_()])
    kernel.lists = [(0x1C, [48]), (0x28, [32])]
    kernel.addends = [32]
    image = rewrite(build([kernel]), GUARD)
    file = Object(image)
    assert text_of(image)[0] == branch(16).words[0]
    assert file.by_name[".nv.info.k"].data[4:8] == struct.pack("<I", 64)
    assert file.by_name[".nv.info.k"].data[12:16] == struct.pack("<I", 48)
    (_, _, addend) = struct.unpack("<QQq", file.by_name[".rela.text.k"].data)
    assert addend == 32


@pytest.mark.parametrize(
    ("form", "carry", "record"),
    [
        (0x210, False, "410c4004"),
        (0x210, True, "420c3014"),
        (0x810, False, "420c4206"),
        (0x810, True, "420c3206"),
        (0xC10, False, "410c4404"),
        (0xC10, True, None),  # not seen
        (0x290, False, None),  # UIADD3
    ],
)
def test_an_addition_of_two_operands_becomes_an_iadd(
    form: int, carry: bool, record: str | None
) -> None:
    word = add(form, carry=carry)
    image = build([Kernel("k", [careful(plain_slot()), plain_slot(word)])])
    made = rewrite(image, ADDS)
    if record is None:
        assert made is image
        return
    assert text_of(made)[1] != word
    assert text_of(made)[1][:2] == struct.pack("<H", 0x7000 | form & 0xE00 | 0x35)
    assert Object(made).by_name[".nv.capmerc.text.k"].data[16:20] == bytes.fromhex(record)


@pytest.mark.parametrize(
    ("first", "last", "value"),
    [(64, 71, 5), (75, 75, 1), (77, 80, 3), (80, 80, 0), (84, 86, 1)],
    ids=["third", "negated", "carry", "carry-bit", "carries-out"],
)
def test_an_addition_of_more_stays(first: int, last: int, value: int) -> None:
    word = with_bits(add(), first, last, value)
    image = build([Kernel("k", [careful(plain_slot()), plain_slot(word)])])
    assert rewrite(image, ADDS) is image


def test_scheduled_code_keeps_its_additions_and_words() -> None:
    image = build([Kernel("k", [plain_slot(), plain_slot(add()), fence(), exit_()])])
    assert rewrite(image, ADDS | WORDS) is image


def test_an_addition_within_a_longer_slot_has_no_record() -> None:
    slot = builder.expanded_slot([careful(plain_slot(add())).words[0]] * 2, builder.BODY16)
    made = rewrite(build([Kernel("k", [careful(plain_slot()), slot])]), ADDS)
    assert text_of(made)[1:] == [text_of(made)[1]] * 2
    assert text_of(made)[1][0] == 0x35
    assert Object(made).by_name[".nv.capmerc.text.k"].data[16:].startswith(slot.record)


def test_unscheduled_code_loses_its_stalls_but_in_dummy_loads() -> None:
    slots = [careful(plain_slot()), fence_of_debuggable_code(), careful(exit_())]
    words = text_of(rewrite(build([Kernel("k", slots)]), WORDS))
    kept = [word for word in words if word[13:15] != struct.pack("<H", CARELESS)]
    assert kept == [builder.DUMMY] * 4
    assert not any(word[15] for word in words)


def fence_of_debuggable_code() -> Slot:
    words = fence().words
    return Slot(
        words[:5] + [with_bits(word, 104, 119, CAREFUL) for word in words[5:]], fence().record
    )


def test_a_guard_of_an_unscheduled_fence_waits() -> None:
    slots = [careful(plain_slot()), fence_of_debuggable_code()]
    words = text_of(rewrite(build([Kernel("k", slots)]), FENCES))
    assert words[5] == with_bits(builder.MEMBAR_GUARD, 104, 119, 0x33DE)
    assert words[6] == slots[1].words[5]


def test_the_membar_of_a_fence_waits_for_its_guard() -> None:
    words = text_of(rewrite(build([Kernel("k", [plain_slot(), fence()])]), FENCES))
    assert words[5] == with_bits(builder.MEMBAR_GUARD, 104, 119, 0x03EC)
    assert words[6] == with_bits(builder.MEMBAR_GPU, 117, 117, 1)


ACQUIRE_BODY = bytes.fromhex("01491416fa0010020000820901008000")
ACQUIRE = [
    bytes.fromhex("1a7900003f0000000000000000c80f00"),
    bytes.fromhex("40750026000000000080c00900642e00"),
    bytes.fromhex("b9790026000000000000000800e42500"),
]


def test_the_acquire_of_a_tensor_map_is_longer() -> None:
    kernel = Kernel("k", [builder.expanded_slot(ACQUIRE, ACQUIRE_BODY), branch(-16), plain_slot()])
    kernel.addends = [48]
    made = rewrite(build([kernel]), FENCES)
    words = text_of(made)
    assert words[:2] == ACQUIRE[:2]
    assert words[2] == with_bits(ACQUIRE[2], 104, 111, 0xE2)  # nothing behind it waits for it
    assert words[3].hex() == "b77900000000000000000000" + "00e40300"
    assert words[4].hex() == "187900000000000000000000" + "00e22f00"
    assert words[5] == branch(-16).words[0]  # to itself: what was appended is behind the slot
    (_, _, addend) = struct.unpack("<QQq", Object(made).by_name[".rela.text.k"].data)
    assert addend == 80


def test_a_range_that_begins_with_a_barrier_begins_in_front_of_it() -> None:
    """Up to 13.0 ptxas counts the barrier of an EXIT, from 13.1 on it does not."""
    slots = [careful(plain_slot()), careful(builder.guarded_exit())]
    image = bytearray(build([Kernel("k", slots)]))
    table = Object(bytes(image)).by_name[".nv_debug_info_reg_sass"]
    at = table.offset + len(table.data) - 8
    struct.pack_into("<II", image, at, 48, 64)
    made = Object(rewrite(bytes(image), FENCES)).by_name[".nv_debug_info_reg_sass"].data
    assert struct.unpack_from("<II", made, len(made) - 8) == (0, 64)


def random_kernel(rng: random.Random, name: str) -> Kernel:
    """What the builder makes, with BSYNC and additions; half of them were not scheduled."""
    longer = [builder.expanded_slot([add(), *ACQUIRE[1:]], ACQUIRE_BODY)]
    kernel = builder.random_kernel(rng, name, longer)
    unscheduled = rng.random() < 0.5
    for at in range(len(kernel.slots)):
        if len(kernel.slots[at].words) == 1 and not kernel.slots[at].record:
            if kernel.slots[at].words[0][:2] == b"\x47\x79":
                continue
            form, carry = rng.choice([0x210, 0x810, 0xC10]), rng.random() < 0.5
            made = [bsync(rng.randrange(3), rng.randrange(16)), add(form, carry=carry), None]
            word = rng.choice(made)
            if word is not None:
                kernel.slots[at] = plain_slot(word)
        if unscheduled and kernel.slots[at].words:
            kernel.slots[at] = careful(kernel.slots[at])
    return kernel


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(40))
def test_random_functions_agree_with_the_reference(seed: int, mode: int) -> None:
    rng = random.Random(seed)
    image = build([random_kernel(rng, f"k{i}") for i in range(rng.randrange(1, 5))])
    if mode & UNGUARD:
        image = rewrite(image, GUARD)
    made = rewrite(image, mode)
    assert made == update(image, mode)
    assert rewrite(made, mode) is made  # once is enough
