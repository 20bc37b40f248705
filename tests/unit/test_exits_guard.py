"""Code for a chip that runs FP64 and IMMA in a known time waits on one that does not."""

from __future__ import annotations

import random
import struct

import pytest
from helpers import exits_builder as builder
from helpers import guarded_reference as reference
from helpers import schedules
from helpers.exits_builder import Kernel, build, exit_, fence, plain_slot
from helpers.exits_native import read, rewrite_exits

import pylink
from pylink._native.exits import rewrite_exits as rewrite_native

FENCES, GUARD = 0, 5
FIVE = tuple(schedules.UNTIMED)
OTHERS = (0x02, 0x10, 0x81, 0x3F, 0x0B, 0x192)
MOVE = int.from_bytes(builder.MOVE, "little") & ~schedules.SCHEDULE
CAREFUL, CARELESS = 0x3FDE, 0x0FC0  # bits 104 to 119 of code that is not optimized


def instruction(operation: int, control: int, last: int = 0) -> bytes:
    """One with these nine bits, bits 104 to 119, and bits 120 to 127."""
    word = MOVE & ~0x1FF | operation | control << 104 | last << 120
    return word.to_bytes(16, "little")


def of(code: list[bytes]) -> list[int]:
    return [int.from_bytes(word, "little") for word in code]


def guard(code: list[bytes], *modes: int) -> list[int]:
    """What becomes of the instructions of a kernel, without its end."""
    image = build([Kernel("k", [plain_slot(word) for word in code])])
    for mode in modes or (GUARD,):
        image = rewrite_exits(image, mode)
    return schedules.code(image)["k"][: len(code)]


@pytest.mark.parametrize("operation", FIVE)
def test_the_next_instruction_waits_for_the_result(operation: int) -> None:
    first, second = guard([instruction(operation, 0xFC2), instruction(0x10, 0xFE2)])
    assert schedules.written_scoreboard(first) == 0
    assert schedules.stall(first) == 2
    assert [schedules.waits(second, index) for index in range(6)] == [True] + [False] * 5


def test_the_scoreboard_is_one_that_fewest_others_use() -> None:
    users = [instruction(0x81, 0xE20 | index << 6 & 0x1C0) for index in (0, 0, 1, 2, 3, 4, 4, 5, 5)]
    first, second = guard([instruction(0x29, 0xFC8), instruction(0x10, 0xFE2), *users])[:2]
    assert schedules.written_scoreboard(first) == 1
    assert schedules.waits(second, 1)
    assert schedules.stall(first) == 4


def test_operands_are_not_kept_for_the_instruction_that_waits() -> None:
    (first, _) = guard([instruction(0x2B, 0xFC8, last=0x3C), instruction(0x10, 0xFE2)])
    assert first >> 122 & 15 == 0


@pytest.mark.parametrize(
    "code",
    [
        [instruction(0x29, 0xE02), instruction(0x10, 0xFE2)],  # has a scoreboard
        [instruction(0x29, CARELESS), instruction(0x10, CARELESS)],  # not optimized, from 13.3 on
        [instruction(operation, 0xFE2) for operation in OTHERS],
    ],
)
def test_other_code_is_the_same_object(code: list[bytes]) -> None:
    image = build([Kernel("k", [plain_slot(word) for word in code])])
    assert rewrite_exits(image, GUARD) is image


def test_what_counts_are_instructions_whose_schedule_is_not_known() -> None:
    careful = [instruction(0x29, CAREFUL), instruction(0x10, CAREFUL)]
    scheduled = [instruction(0x29, 0xFC8), instruction(0x2A, 0xFC8), instruction(0x10, 0xFE2)]
    for code, count in ((careful, 0), (scheduled, 2), (careful + scheduled, 2)):
        objects = read(build([Kernel("k", [plain_slot(word) for word in code])]))
        *_, slowed = rewrite_native(objects, [(0, GUARD)])
        assert slowed == ([(0, count)] if count else [])


def test_the_instruction_that_waits_is_one_that_stays() -> None:
    """A fence loses its dummy loads before anything waits."""
    code = [plain_slot(instruction(0x29, 0xFC8)), fence(), exit_()]
    image = rewrite_exits(rewrite_exits(build([Kernel("k", code)]), FENCES), GUARD)
    first, second = schedules.code(image)["k"][:2]
    assert schedules.operation(second) == schedules.MEMBAR
    assert schedules.waits(second, schedules.written_scoreboard(first))


@pytest.mark.parametrize("seed", range(200))
def test_random_code_agrees_with_the_reference(seed: int) -> None:
    rng = random.Random(seed)
    controls = (CAREFUL, CARELESS, 0x3FC0, 0xFC2, 0xFE2)
    code = [
        rng.choice((builder.DUMMY, builder.MEMBAR_GUARD))
        if rng.random() < 0.1
        else instruction(
            rng.choice((*FIVE, *OTHERS)),
            rng.choice(controls) if rng.random() < 0.7 else rng.randrange(1 << 16),
            rng.randrange(64),
        )
        for _ in range(rng.randrange(1, 60))
    ]
    objects = read(build([Kernel("k", [plain_slot(word) for word in code])]))
    whole = schedules.code(build([Kernel("k", [plain_slot(word) for word in code])]))["k"]
    expected, others = reference.guarded(whole)
    *_, slowed = rewrite_native(objects, [(0, GUARD)])
    assert guard(code) == expected[: len(code)]
    assert slowed == ([(0, others)] if others else [])


def test_only_links_for_the_other_chip_guard() -> None:
    code = [plain_slot(instruction(0x29, 0xFC8)), plain_slot(), exit_()]
    image = bytearray(build([Kernel("k", code)]))
    (flags,) = struct.unpack_from("<I", image, 48)
    assert flags >> 8 & 0xFFFF == 100
    for arch, kinds in (
        ("sm_100", []),
        ("sm_103", ["untimed-code"]),
        ("sm_103a", ["untimed-code"]),
    ):
        result = pylink.link([("a.cubin", bytes(image))], arch=arch)
        assert [found.kind for found in result.diagnostics] == kinds, arch
        word = schedules.code(result.image)["k"][0]
        assert (schedules.written_scoreboard(word) == schedules.NO_SCOREBOARD) is not bool(kinds)
