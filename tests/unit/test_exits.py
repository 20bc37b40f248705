"""Kernels of sm_100 and later end up as nvlink's finalizer leaves them, and all offsets follow."""

from __future__ import annotations

import random
import struct

import pytest
from helpers import exits_builder as builder
from helpers.cubin_builder import with_wide_counts
from helpers.exits_builder import (
    Kernel,
    branch,
    build,
    exit_,
    fence,
    guarded_exit,
    plain_slot,
    wait,
)
from helpers.exits_code import CCTL, ERRBAR, MEMBAR, NOP, guard, stalled
from helpers.exits_native import MalformedKernel, Refused, read, rewrite, rewrite_exits
from helpers.exits_reference import Object
from helpers.exits_reference import rewrite_exits as rewrite_reference
from helpers.line_program import sleb

import pylink
from pylink._native.elfheaders import file_image
from pylink.facts.outcomes import ReadFault

FENCES, SHORT, LONG = range(3)


def rewritten(kernel: Kernel, mode: int) -> Object:
    return Object(rewrite_exits(build([kernel]), mode))


def code_of(file: Object, name: str = "k") -> list[bytes]:
    """The instructions up to the padding, without the branch that ends them."""
    text = file.by_name[f".text.{name}"].data
    words = [text[i : i + 16] for i in range(0, len(text), 16)]
    while words[-1] == NOP:
        words.pop()
    return words[:-1]


def attribute_list(file: Object, attribute: int) -> list[int]:
    data, at = file.by_name[".nv.info.k"].data, 0
    while data[at + 1] != attribute:
        at += 4 + struct.unpack_from("<H", data, at + 2)[0]
    (size,) = struct.unpack_from("<H", data, at + 2)
    return list(struct.unpack_from(f"<{size // 4}I", data, at + 4))


def test_a_kernel_without_fence_or_exit_is_the_same_object() -> None:
    image = build([Kernel("k", [plain_slot()])])
    for mode in (FENCES, SHORT, LONG):
        assert rewrite_exits(image, mode) is image


def of_opcode(opcode: int) -> bytes:
    """An instruction with these nine bits."""
    return struct.pack("<H", 0x7E00 | opcode) + builder.MOVE[2:]


CALLS = (0x143, 0x144)  # CALL.ABS, CALL.REL
COPIES = (0x1AE,)  # LDGSTS
BARRIERS = (0x1A7, 0x1B1, 0x1B2)  # SYNCS
SURFACE_STORES = (0x19B, 0x19D, 0x19F)  # SUST.P, SUST, SURED
OTHERS = (0x142, 0x145, 0x19A, 0x19C, 0x19E, 0x1A6, 0x1AF, 0x1B0, 0x1B3)


@pytest.mark.parametrize("opcode", [*CALLS, *COPIES, *BARRIERS, *SURFACE_STORES, *OTHERS], ids=hex)
def test_a_fence_keeps_only_what_its_kernel_needs(opcode: int) -> None:
    file = rewritten(Kernel("k", [fence(), plain_slot(of_opcode(opcode)), exit_()]), FENCES)
    kept = [builder.DUMMY] * 4 * (opcode in CALLS + COPIES)
    kept += [builder.MEMBAR_GUARD] * (opcode in CALLS + BARRIERS)
    assert code_of(file)[:-2] == [*kept, builder.MEMBAR_GPU, ERRBAR, CCTL]


def test_a_large_file_is_rewritten_twice() -> None:
    """What the first time gave moves while the second is noted: as an object of 12.8 with -g."""
    kernels = [
        Kernel(name, [plain_slot()] * 20_000 + [fence(), exit_()]) for name in ("k", "l", "m")
    ]
    objects = read(build(kernels))

    def contents(*times: tuple[int, ...]) -> list[bytes]:
        tables = objects
        for modes in times:
            tables = rewrite(tables, *modes)
        return [tables.arena[row.offset : row.offset + row.size] for row in tables.sections]

    assert contents((FENCES, LONG)) == contents((FENCES,), (LONG,))


def test_slots_without_instructions_stay_where_they_are() -> None:
    hints = [builder.hint()] * 2
    kernel = Kernel("k", [*hints, fence(), *hints, exit_()])
    file = rewritten(kernel, SHORT)
    assert code_of(file)[:-3] == [builder.MEMBAR_GPU, ERRBAR, CCTL]
    capsule = file.by_name[".nv.capmerc.text.k"].data
    assert struct.unpack_from("<I", capsule, 8) == (7,)  # as many as before
    fence_record = struct.pack("<H", 0x51 | 3 << 7) + builder.FENCE_BODY
    records = builder.HINT * 2 + fence_record + builder.HINT * 2
    assert capsule[16 : 16 + len(records)] == records


def test_a_membar_of_a_guard_that_guards_nothing_is_the_fence() -> None:
    slot = builder.expanded_slot([builder.MEMBAR_GUARD, ERRBAR, CCTL], builder.FENCE_BODY)
    file = rewritten(Kernel("k", [fence(), slot, exit_()]), FENCES)
    assert code_of(file)[3:-1] == slot.words


def test_fences_stay_whole_where_code_is_linked_in_later() -> None:
    kernel = Kernel("k", [fence(), exit_()])
    assert code_of(rewritten(kernel, LONG))[:8] == fence().words


@pytest.mark.parametrize("predicate", range(16))
def test_a_barrier_takes_over_the_predicate_of_its_exit(predicate: int) -> None:
    file = rewritten(Kernel("k", [plain_slot(), exit_(predicate)]), LONG)
    bits = predicate << 4
    assert code_of(file)[1:] == [
        *(guard(word, bits) for word in (MEMBAR, ERRBAR, CCTL, builder.EXIT)),
    ]


@pytest.mark.parametrize("opcode", [*CALLS, *COPIES, *BARRIERS, *SURFACE_STORES, *OTHERS], ids=hex)
def test_a_barrier_orders_stores_that_errors_can_follow(opcode: int) -> None:
    file = rewritten(Kernel("k", [plain_slot(of_opcode(opcode)), exit_()]), SHORT)
    ordered = [MEMBAR] * (opcode in CALLS + SURFACE_STORES)
    assert code_of(file)[1:] == [*ordered, ERRBAR, CCTL, builder.EXIT]


def test_a_leaf_kernel_compiled_for_debugging_loses_the_membar() -> None:
    file = rewritten(Kernel("k", [plain_slot(), guarded_exit()]), SHORT)
    assert code_of(file)[1:] == [ERRBAR, CCTL, builder.EXIT]
    kernel = Kernel("k", [plain_slot(), guarded_exit()])
    assert rewrite_exits(build([kernel]), LONG) == build([kernel])


def test_fences_alone_leave_exits_as_they_are() -> None:
    file = rewritten(Kernel("k", [fence(), exit_()]), FENCES)
    assert code_of(file)[-1] == builder.EXIT


@pytest.mark.parametrize(
    ("nop", "stall", "left"),
    [(0, 5, (0, 5)), (0, 6, (0, 5)), (0, 15, (0, 8)), (1, 15, (0, 9)), (13, 15, (6, 15))],
)
def test_a_barrier_uses_the_time_its_exit_waits(
    nop: int, stall: int, left: tuple[int, int]
) -> None:
    word = builder.EXIT[:13] + bytes([0xC0 | stall << 1 | 0x20 * (stall < 12)]) + builder.EXIT[14:]
    slots = [plain_slot(), *[wait(nop)] * bool(nop), plain_slot(word)]
    words = code_of(rewritten(Kernel("k", slots), SHORT))[1:]
    assert words[:2] == [ERRBAR, CCTL]
    assert [word[0] for word in words[2:]] == [0x18] * bool(left[0]) + [0x4D]
    assert tuple(word[13] >> 1 & 15 for word in words[2:]) == tuple(filter(None, left))


def test_a_jump_to_an_exit_reaches_its_barrier() -> None:
    file = rewritten(Kernel("k", [branch(16), exit_(), exit_()]), SHORT)
    # Over the first barrier and EXIT, to the ERRBAR of the second.
    assert code_of(file)[0] == branch(48).words[0]


def test_a_jump_back_over_a_fence_gets_shorter() -> None:
    file = rewritten(Kernel("k", [plain_slot(), fence(), branch(-160), exit_()]), FENCES)
    assert code_of(file)[4] == branch(-80).words[0]


@pytest.mark.parametrize("predicate", [7, 1, 9])
@pytest.mark.parametrize(
    ("sets", "waits", "cycles"),
    [
        pytest.param(0b111_000, 0b000001, 1, id="for the result"),
        pytest.param(0b101_111, 0b100010, 1, id="for the operands"),
        pytest.param(0b001_000, 0b000100, 2, id="for another"),
        pytest.param(0b111_111, 0b111111, 2, id="where none is set"),
    ],
)
def test_the_stall_before_an_inserted_barrier(
    predicate: int, sets: int, waits: int, cycles: int
) -> None:
    """A scoreboard is set for two cycles before an EXIT that waits, and the barrier does not."""
    slow = with_bits(stalled(builder.MOVE, 2), 110, 6, sets)
    last = plain_slot(with_bits(exit_(predicate).words[0], 116, 6, waits))
    file = rewritten(Kernel("k", [plain_slot(slow), last]), SHORT)
    assert code_of(file)[0] == stalled(slow, cycles)


@pytest.mark.parametrize(("compared", "between", "cycles"), [(1, 11, 2), (1, 12, 1), (2, 4, 1)])
def test_a_barrier_reads_its_predicate_in_time(compared: int, between: int, cycles: int) -> None:
    compare = with_bits(with_bits(builder.MOVE, 84, 3, 7), 81, 3, compared)
    slow = with_bits(stalled(builder.MOVE, 2), 110, 6, 0b111_000)
    last = plain_slot(with_bits(exit_(1).words[0], 116, 6, 1))
    file = rewritten(
        Kernel("k", [plain_slot(stalled(compare, between)), plain_slot(slow), last]), SHORT
    )
    assert code_of(file)[1] == stalled(slow, cycles)


def with_bits(word: bytes, first: int, count: int, value: int) -> bytes:
    """An instruction with other bits from a place on."""
    mask = (1 << count) - 1 << first
    return (int.from_bytes(word, "little") & ~mask | value << first).to_bytes(16, "little")


# Of an instruction, of one with text, of the function, of an instruction, and of a kind unknown.
ANNOTATIONS = [1, 64, 2, 112, 5, 64, 64, 3, 4, 64, 1, 112, 4, 64, 1, 64]


def test_offsets_follow_the_code() -> None:
    size = len(builder.text_of(Kernel("k", [plain_slot()] * 9)))
    kernel = Kernel("k", [*[plain_slot()] * 4, exit_(), *[plain_slot()] * 2, exit_(), plain_slot()])
    kernel.lists = [(0x1C, [64, 112]), (0x28, [80]), (0x19, [64])]
    kernel.lists += [(0x44, [80, 0xFFF0, 112, 7]), (0x55, ANNOTATIONS)]
    kernel.addends = [0, 64, 80, 112, size]
    kernel.rows = [(0, 3), (64, 4), (80, 5), (112, 9)]
    kernel.places = [64, 112]
    file = rewritten(kernel, SHORT)
    assert attribute_list(file, 0x1C) == [64 + 32, 112 + 64]
    assert attribute_list(file, 0x28) == [80 + 32]
    assert attribute_list(file, 0x19) == [64]
    assert attribute_list(file, 0x44) == [80 + 32, 0xFFF0, 112 + 64, 7]
    # Texts stay, and what follows an annotation of another kind cannot be told.
    assert attribute_list(file, 0x55) == [
        *(1, 64 + 32, 2, 112 + 64, 5, 64, 64),
        *(3, 4, 64, 1, 112 + 64, 4, 64, 1, 64),
    ]
    rows = struct.iter_unpack("<QQq", file.by_name[".rela.text.k"].data)
    fresh = len(file.by_name[".text.k"].data)
    assert [row[2] for row in rows] == [0, 64, 80 + 32, 112 + 32, fresh]
    assert file.symbols[1][5] == fresh
    assert struct.pack("<II", 16, fresh) in file.by_name[".nv_debug_info_reg_sass"].data
    frame = file.by_name[".debug_frame"].data
    assert frame.endswith(b"\x04" + struct.pack("<I", 16) + b"\x04" + struct.pack("<I", 20))
    # Line 4 at 64, then 1 line in 48 bytes, 4 lines in 32 bytes, and the end.
    rest = b"\x03\x01\x02\xc0\x00\x01\x03\x01\x02\x30\x01\x03\x04\x02\x20\x01"
    end = b"\x02" + sleb(fresh - 144) + b"\0\x01\x01"
    assert file.by_name[".debug_line"].data.endswith(b"\x03\x02\x01" + rest + end)


def test_lines_before_the_address_count_once() -> None:
    kernel = Kernel("k", [plain_slot(), fence(), exit_()], rows=[(0, 3), (16, 4)])
    image = bytearray(build([kernel]))
    sections = Object(bytes(image)).by_name
    line, row = sections[".debug_line"], sections[".rela.debug_line"]
    # DW_LNE_set_address of 11 bytes and DW_LNS_set_file of 2 become DW_LNS_advance_line and it.
    start = line.offset + line.data.index(b"\0\x09\x02")
    address = bytes(image[start : start + 11])
    image[start : start + 13] = b"\x03\x02" + address
    (place,) = struct.unpack_from("<Q", image, row.offset)
    struct.pack_into("<Q", image, row.offset, place + 2)
    data = Object(rewrite_exits(bytes(image), FENCES)).by_name[".debug_line"].data
    program = data[start - line.offset :]
    assert program.startswith(b"\x03\x02" + address + b"\x03\x02\x01")


@pytest.mark.parametrize("mode", [FENCES, SHORT, LONG])
@pytest.mark.parametrize("seed", range(60))
def test_random_kernels_agree_with_the_reference(seed: int, mode: int) -> None:
    rng = random.Random(seed)
    kernels = [builder.random_kernel(rng, f"k{i}") for i in range(rng.randrange(1, 5))]
    image = build(kernels)
    assert rewrite_exits(image, mode) == rewrite_reference(image, mode)


def test_functions_exit_as_kernels_that_know_nothing_do() -> None:
    """Whoever calls them; the fences of functions stay."""
    kernel = Kernel("k", [plain_slot(), fence(), exit_()], entry=False)
    assert rewrite_exits(build([kernel]), FENCES) == build([kernel])
    for mode in (SHORT, LONG):
        code = code_of(rewritten(kernel, mode))
        assert code[-4:-1] == [MEMBAR, ERRBAR, CCTL]
        assert code[1:9] == fence().words
    assert rewrite_exits(image := build([Kernel("k", [fence()], entry=False)]), LONG) is image


@pytest.mark.parametrize("seed", range(20))
def test_rewriting_twice_changes_nothing_more(seed: int) -> None:
    rng = random.Random(seed)
    kernel = builder.random_kernel(rng, "k")
    for mode in (FENCES, SHORT, LONG):
        once = rewrite_exits(build([kernel]), mode)
        assert rewrite_exits(once, mode) is once


def patched(section: str, at: int, value: int) -> bytes:
    kernel = Kernel("k", [fence(), plain_slot(), exit_()], lists=[(0x1C, [80])], addends=[0])
    image = bytearray(build([kernel]))
    image[Object(bytes(image)).by_name[section].offset + at] = value
    return bytes(image)


@pytest.mark.parametrize(
    ("section", "at", "value", "reason"),
    [
        (".nv.capmerc.text.k", 8, 5, "record is unknown"),
        (".nv.capmerc.text.k", 8, 2, "does not end with the record"),
        (".nv.capmerc.text.k", 8, 0, "bitmap is empty"),
        (".nv.capmerc.text.k", 11, 1, "bitmap is empty or runs past"),
        (".nv.capmerc.text.k", 18, 0x77, "record is unknown"),
        (".nv.capmerc.text.k", 16, 0xD1, "differ in the number of instructions"),
        (".debug_line", 4, 9, "line unit is malformed"),
        (".debug_frame", 28 + 4, 1, "FDE is malformed"),
        (".nv.info.k", 1, 0x39, "attribute record is malformed"),
        (".nv_debug_info_reg_sass", 2, 99, "register table is malformed"),
    ],
)
def test_a_malformed_section_is_named(section: str, at: int, value: int, reason: str) -> None:
    with pytest.raises(MalformedKernel, match=reason) as caught:
        rewrite_exits(patched(section, at, value), SHORT)
    assert caught.value.section == section


@pytest.mark.parametrize(
    ("section", "at", "value", "message"),
    [
        (".nv.capmerc.text.k", 18, 0x77, "mercury capsule is damaged: capsule record is unknown"),
        (".debug_line", 4, 9, "debug data is damaged: line unit is malformed"),
        (".debug_line", 51, 9, "debug data is damaged: it is cut off"),
        (".nv_debug_info_reg_sass", 2, 99, "debug data is damaged: register table is malformed"),
    ],
)
def test_a_link_says_what_is_damaged(section: str, at: int, value: int, message: str) -> None:
    with pytest.raises(pylink.LinkError) as caught:
        pylink.link([("a.cubin", patched(section, at, value))], arch="sm_100")
    assert section in str(caught.value)
    assert message in str(caught.value)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="mode 6"):
        rewrite_exits(build([Kernel("k", [plain_slot()])]), 6)


def test_files_that_number_more_sections_than_their_header_can() -> None:
    image = build([Kernel("k", [fence(), exit_()])])
    plain_, wide = (rewrite(read(data), SHORT) for data in (image, with_wide_counts(image)))
    rows = list(zip(wide.sections, plain_.sections, strict=True))
    for ours, theirs in rows[1:]:
        contents = {
            objects.arena[row.offset : row.offset + row.size]
            for objects, row in ((wide, ours), (plain_, theirs))
        }
        assert len(contents) == 1


def test_a_rewritten_file_as_a_file() -> None:
    kernel = Kernel("k", [plain_slot(), fence(), exit_()], rows=[(0, 3), (16, 4)])
    image = build([kernel])
    objects = read(image)
    assert file_image(objects, 0) == image
    whole = Object(file_image(rewrite(objects, SHORT), 0))
    expected = Object(rewrite_exits(image, SHORT))
    for ours, theirs in zip(whole.sections, expected.sections, strict=True):
        assert (ours.data == theirs.data) is (ours.name != ".symtab"), ours.name


def test_a_relocation_of_padding_that_is_gone_is_refused() -> None:
    kernel = Kernel("k", [*[fence()] * 9, exit_()], addends=[0])
    image = bytearray(build([kernel]))
    size = len(builder.text_of(kernel))
    struct.pack_into("<Q", image, Object(bytes(image)).by_name[".rela.text.k"].offset, size - 16)
    assert rewrite_exits(bytes(image), LONG) != image
    with pytest.raises(Refused) as caught:
        rewrite_exits(bytes(image), FENCES)
    assert caught.value.reason == ReadFault.RELOC_OFFSET
    with pytest.raises(pylink.LinkError, match=r"\.rela\.text\.k\[0\]: .* outside its section"):
        pylink.link([("a.cubin", bytes(image))], arch="sm_100")


def test_no_damage_is_worse_than_an_error() -> None:
    rng = random.Random(5)
    whole = build([builder.random_kernel(rng, "a"), builder.random_kernel(rng, "b")])
    for _ in range(3000):
        image = bytearray(whole)
        for _ in range(rng.choice([1, 1, 2, 8])):
            image[rng.randrange(len(image))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF])
        if rng.random() < 0.1:
            del image[rng.randrange(len(image)) :]
        try:
            assert rewrite(read(bytes(image)), rng.randrange(3)).files
        except (MalformedKernel, Refused) as error:
            assert error.reason  # noqa: PT017 - most damage is not an error at all
