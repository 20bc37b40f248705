"""Rebuilt debug sections: sequences and frames of live functions only, in output order."""

from __future__ import annotations

import functools
import random
import struct
from collections.abc import Callable

import pytest
from helpers import debug_reference as reference

from pylink._native import debug
from pylink._native.debug import MalformedDebugSection
from pylink._native.tables import Blob

LIVE, DEAD, OVERRIDDEN, OTHER = range(4)
END_SEQUENCE = bytes.fromhex("00 01 01")

Row = tuple[int, int, int]
Tables = tuple[bytes, bytes, bytes]
Make = Callable[[random.Random], tuple[bytes, list[Row]]]
Rebuild = Callable[[bytes, bytes, bytes], tuple[bytes, ...]]


def line_unit(sequences: list[bytes], header: bytes = b"\x01\x01\xfb\x0e\x0a\0a.cu\0") -> bytes:
    """A DWARF 2 line unit: each sequence sets its address, then runs the given program."""
    program = b"".join(b"\0\x09\x02" + bytes(8) + body for body in sequences)
    unit = struct.pack("<HI", 2, len(header)) + header + program
    return struct.pack("<I", len(unit)) + unit


def addresses(section: bytes) -> list[int]:
    """Offsets of the address operands of all sequences of a hand-made section."""
    found = []
    at = section.find(b"\0\x09\x02")
    while at >= 0:
        found.append(at + 3)
        at = section.find(b"\0\x09\x02", at + 11)
    return found


def cie(body: bytes = b"\x03\0\x04\x7c") -> bytes:
    return struct.pack("<IQQ", 0xFFFFFFFF, 8 + len(body), 0xFFFFFFFFFFFFFFFF) + body


def fde(body: bytes = b"\x0c\x81\x80\x80") -> bytes:
    return struct.pack("<IQQQQ", 0xFFFFFFFF, 24 + len(body), 0, 0, 0x100) + body


def pack(pieces: list[tuple[bytes, list[Row]]]) -> Tables:
    """Arena, piece table and relocation table of a few sections with their rows."""
    arena, table, rows = b"head", b"", b""
    for data, its_rows in pieces:
        table += reference.PIECE.pack(len(arena), len(data), len(its_rows))
        arena += data + b"gap"
        rows += b"".join(reference.RELOC.pack(*row) for row in its_rows)
    return arena, table, rows


def rebuild_line(
    arena: bytes,
    pieces: bytes,
    relocs: bytes,
    headers: bytes = b"",
    patches: bytes = b"",
    *,
    ended: bool = False,
) -> Tables:
    """The native function of this name, with bytes for its tables."""
    tables = (Blob(table) for table in (pieces, relocs, headers, patches))
    contents, moved, units = debug.rebuild_line(arena, *tables, ended=ended)
    return contents.data, moved.data, units.data


def rebuild_frame(arena: bytes, pieces: bytes, relocs: bytes) -> tuple[bytes, bytes]:
    """The native function of this name, with bytes for its tables."""
    contents, moved = debug.rebuild_frame(arena, Blob(pieces), Blob(relocs))
    return contents.data, moved.data


def rebuild_reg_sass(arena: bytes, pieces: bytes, names: bytes) -> bytes:
    """The native function of this name, with bytes for its tables."""
    return debug.rebuild_reg_sass(arena, Blob(pieces), names).data


def pairs(table: bytes) -> list[tuple[int, int]]:
    """The rows of a moved table."""
    return [(first, second) for first, second in struct.iter_unpack("<QQ", table)]


def test_sequences_follow_the_output_symbols_and_the_dead_ones_go() -> None:
    unit = line_unit([b"dead", b"third", b"first", b"lost"])
    two = line_unit([b"second"])
    a, b, c, d = addresses(unit)
    (e,) = addresses(two)
    pieces = [
        (unit, [(a, 0, DEAD), (b, 9, LIVE), (c, 4, LIVE), (d, 4, OVERRIDDEN)]),
        (two, [(e, 7, LIVE)]),
    ]
    contents, moved, _ = rebuild_line(*pack(pieces))
    expected = line_unit([b"first", b"third"])
    assert contents == expected + line_unit([b"second"])
    assert pairs(moved) == list(zip(addresses(contents), [2, 1, 4], strict=True))


def test_a_unit_without_live_functions_keeps_its_header() -> None:
    unit = line_unit([b"dead"])
    contents, moved, _ = rebuild_line(*pack([(unit, [(addresses(unit)[0], 0, DEAD)])]))
    assert (contents, moved) == (line_unit([]), b"")


def test_a_unit_without_live_functions_ends_where_the_release_says_so() -> None:
    unit, ended = line_unit([b"dead"]), line_unit([]) + END_SEQUENCE
    ended = struct.pack("<I", len(ended) - 4) + ended[4:]
    live = line_unit([b"live"])
    pieces = [
        (unit + line_unit([]) + ended, [(addresses(unit)[0], 0, DEAD)]),
        (live, [(addresses(live)[0], 1, LIVE)]),
    ]
    contents, _, units = rebuild_line(*pack(pieces), ended=True)
    assert contents == 3 * ended + live
    starts = [base for _, _, base in reference.UNIT.iter_unpack(units)]
    assert starts == [number * len(ended) for number in range(4)]


def test_units_tell_where_they_went() -> None:
    dead, live = line_unit([b"dead"]), line_unit([b"live"])
    fields = addresses(dead + live)
    pieces = [
        (dead + live, [(fields[0], 0, DEAD), (fields[1], 3, LIVE)]),
        (b"", []),
        (live, [(addresses(live)[0], 4, LIVE)]),
    ]
    _, _, units = rebuild_line(*pack(pieces))
    empty = len(line_unit([]))
    assert list(reference.UNIT.iter_unpack(units)) == [
        (0, 0, 0),
        (0, len(dead), empty),
        (2, 0, empty + len(live)),
    ]


def test_header_fields_come_from_the_mercury_twin_of_the_same_unit() -> None:
    def headed(program: list[bytes], name: bytes, value: int) -> bytes:
        return line_unit(program, name + struct.pack("<I", value))

    plain = headed([b"x"], b"name\0", 0) + headed([b"dead"], b"longer\0", 0)
    first = headed([b"longer x"], b"name\0", 0)
    merc = first + headed([], b"longer\0", 0)
    x, dead = addresses(plain)
    arena, pieces, relocs = pack([(plain, [(x, 1, LIVE), (dead, 0, DEAD)])])
    headers = reference.PIECE.pack(len(arena), len(merc), 2)
    patches = reference.PATCH.pack(len(first) + 17, 0x51) + reference.PATCH.pack(15, 0x42)
    contents, _, _ = rebuild_line(arena + merc, pieces, relocs, headers, patches)
    assert contents == headed([b"x"], b"name\0", 0x42) + headed([], b"longer\0", 0x51)


def test_a_dead_frame_goes_with_its_cie_and_pointers_follow() -> None:
    frames = cie(b"dead") + fde() + cie(b"live") + fde(b"body")
    two = cie(b"more") + fde(b"two!") + fde(b"three")
    dead = len(cie(b"dead")) + 20
    live = len(frames) - len(fde(b"body")) + 20
    second = len(cie(b"more")) + 20
    pieces = [
        (frames, [(live - 8, 0, OTHER), (live, 5, LIVE), (dead, 0, DEAD)]),
        (two, [(second, 6, LIVE)]),
    ]
    contents, moved = rebuild_frame(*pack(pieces))
    kept = cie(b"live") + fde(b"body")
    kept = kept[: len(cie(b"live")) + 12] + bytes(8) + kept[len(cie(b"live")) + 20 :]
    pointed = bytearray(two)
    for record in (len(cie(b"more")), len(cie(b"more")) + len(fde(b"two!"))):
        pointed[record + 12 : record + 20] = len(kept).to_bytes(8, "little")
    assert contents == kept + pointed
    assert pairs(moved) == [(len(kept) + second, 3), (len(cie(b"live")) + 20, 1)]


def registers(name: bytes, ranges: list[tuple[int, int]]) -> bytes:
    """One function's entry of .nv_debug_info_reg_sass."""
    entry = name + b"\0" + struct.pack("<I", len(ranges))
    for start, end in ranges:
        entry += b"\0\0\0\0%r1\0" + struct.pack("<III", 0x05000003, start, end)
    return entry


def test_only_the_first_entry_of_a_live_name_keeps_its_ranges() -> None:
    ranges = [(0x10, 0x40), (0x30, 0x50)]
    table = registers(b"kernel", ranges) + registers(b"dead", ranges) + registers(b"none", [])
    two = registers(b"kernel", ranges) + registers(b"other", ranges)
    arena, pieces, _ = pack([(table, []), (b"", []), (two, [])])
    contents = rebuild_reg_sass(arena, pieces, b"other\0none\0kernel\0")
    zero = [(0, 0), (0, 0)]
    assert contents == (
        registers(b"kernel", ranges)
        + registers(b"dead", zero)
        + registers(b"none", [])
        + registers(b"kernel", zero)
        + registers(b"other", ranges)
    )


def random_registers(rng: random.Random) -> tuple[bytes, list[Row]]:
    names = [b"", b"k", b"kernel", b"a_device_function_with_a_long_name", b"dead"]
    entries = [
        registers(rng.choice(names), [(1, 2)] * rng.randint(0, 3)) for _ in range(rng.randint(0, 4))
    ]
    return b"".join(entries), []


def random_lines(rng: random.Random) -> tuple[bytes, list[Row]]:
    units = [[rng.randbytes(rng.randint(0, 5)) for _ in range(rng.randint(0, 6))] for _ in "12"]
    section = b"".join(
        line_unit([body.replace(b"\0", b"\1") for body in unit])
        for unit in units[: rng.randint(0, 2)]
    )
    return section, random_rows(rng, addresses(section))


def random_frames(rng: random.Random) -> tuple[bytes, list[Row]]:
    section, fields = b"", []
    for _ in range(rng.randint(0, 6)):
        if not section or rng.random() < 0.7:
            section += cie(rng.randbytes(rng.randint(0, 9)))
        fields.append(len(section) + 20)
        section += fde(rng.randbytes(rng.randint(0, 9)))
    return section, random_rows(rng, fields)


def random_rows(rng: random.Random, offsets: list[int]) -> list[Row]:
    rows = [(offset, rng.randint(0, 5), rng.choice([0, 0, 1, 2, 3])) for offset in offsets]
    rng.shuffle(rows)
    return rows


def damage(rng: random.Random, data: bytes) -> bytes:
    """Overwrite a few bytes and cut some of the end off."""
    damaged = bytearray(data)
    for _ in range(rng.randint(0, 3) if damaged else 0):
        damaged[rng.randrange(len(damaged))] = rng.choice([0, 1, 0x7F, 0xFF])
    return bytes(damaged[: rng.choice([len(data), rng.randint(0, len(data))])])


def verdict(rebuild: Rebuild, tables: Tables) -> tuple[bytes, ...] | None:
    """What it returns, or None when it refuses the section."""
    try:
        return rebuild(*tables)
    except ValueError:
        return None


def rebuild_registers(arena: bytes, pieces: bytes, _: bytes) -> Tables:
    return rebuild_reg_sass(arena, pieces, LIVE_NAMES), b"", b""


def reference_registers(arena: bytes, pieces: bytes, _: bytes) -> Tables:
    return reference.rebuild_reg_sass(arena, pieces, LIVE_NAMES), b"", b""


LIVE_NAMES = b"kernel\0a_device_function_with_a_long_name\0k\0kernel\0"
KINDS: dict[str, tuple[Make, Rebuild, Rebuild]] = {
    "line": (random_lines, rebuild_line, reference.rebuild_line),
    "line that ends": (
        random_lines,
        functools.partial(rebuild_line, ended=True),
        functools.partial(reference.rebuild_line, ended=True),
    ),
    "frame": (random_frames, rebuild_frame, reference.rebuild_frame),
    "registers": (random_registers, rebuild_registers, reference_registers),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kernels_agree_with_the_reference(kind: str) -> None:
    make, kernel, naive = KINDS[kind]
    rng = random.Random(2)
    for _ in range(300):
        tables = pack([make(rng) for _ in range(rng.randint(0, 5))])
        assert kernel(*tables) == naive(*tables)


@pytest.mark.parametrize("kind", KINDS)
def test_kernels_judge_damaged_sections_like_the_reference(kind: str) -> None:
    make, kernel, naive = KINDS[kind]
    rng = random.Random(3)
    refused = 0
    for _ in range(600):
        pieces = [(damage(rng, data), rows) for data, rows in (make(rng) for _ in range(3))]
        result = verdict(kernel, pack(pieces))
        assert result == verdict(naive, pack(pieces))
        refused += result is None
    assert 100 < refused < 600


GOOD = line_unit([b"good"])
ADDRESS = addresses(GOOD)[0]
MALFORMED_LINES: dict[str, tuple[bytes, list[Row], int]] = {
    "cut off": (b"\x01\0\0", [], 0),
    "64-bit length": (b"\xff" * 24, [], 0),
    "length beyond the end": (b"\xff\xff\xff\x7f" + GOOD[4:], [], 0),
    "length without a header": (b"\x05\0\0\0" + GOOD[4:], [], 0),
    "unknown version": (GOOD[:4] + b"\x05" + GOOD[5:], [], 0),
    "header beyond the unit": (GOOD[:6] + b"\xff\0\0\0" + GOOD[10:], [], 0),
    "address in the header": (GOOD, [(12, 1, LIVE)], 12),
    "address at no opcode": (GOOD, [(ADDRESS + 1, 1, LIVE)], ADDRESS + 1),
    "address twice": (GOOD, [(ADDRESS, 1, LIVE), (ADDRESS, 2, DEAD)], ADDRESS),
    "address past the units": (GOOD, [(2**63, 1, LIVE)], 2**63),
}


@pytest.mark.parametrize("case", MALFORMED_LINES)
def test_malformed_line_sections_are_refused_with_their_place(case: str) -> None:
    data, rows, offset = MALFORMED_LINES[case]
    shift = len(GOOD)
    rows = [(r_offset + shift, target, state) for r_offset, target, state in rows]
    with pytest.raises(MalformedDebugSection) as caught:
        rebuild_line(*pack([(b"", []), (GOOD + data, rows)]))
    assert (caught.value.piece, caught.value.offset) == (1, offset + shift)
    assert f"{offset + shift:#x}" in str(caught.value)


MALFORMED_FRAMES = {
    "cut off": (cie()[:19], 0),
    "32-bit length": (b"\x18\0\0\0" + bytes(24), 0),
    "length beyond the end": (cie()[:4] + b"\xff" * 8 + cie()[12:], 0),
    "length below the smallest": (cie()[:4] + struct.pack("<Q", 7) + cie()[12:], 0),
    "FDE without address": (cie() + fde()[:4] + struct.pack("<Q", 23) + fde()[12:], len(cie())),
    "FDE first": (fde(), 0),
}


@pytest.mark.parametrize("case", MALFORMED_FRAMES)
def test_malformed_frame_sections_are_refused_with_their_place(case: str) -> None:
    data, offset = MALFORMED_FRAMES[case]
    with pytest.raises(MalformedDebugSection) as caught:
        rebuild_frame(*pack([(b"", []), (data, [])]))
    assert (caught.value.piece, caught.value.offset) == (1, offset)


MALFORMED_REGISTERS = {
    "name without an end": (b"kernel", 0),
    "no count": (b"kernel\0\1\0\0", 0),
    "count beyond the end": (registers(b"k", []) + b"kernel\0\xff\xff\xff\xff" + bytes(99), 6),
    "register without an end": (registers(b"k", [(1, 2)])[:6] + b"name" * 20, 0),
    "register cut off": (registers(b"k", [(1, 2)])[:-1], 0),
}


@pytest.mark.parametrize("case", MALFORMED_REGISTERS)
def test_malformed_register_sections_are_refused_with_their_place(case: str) -> None:
    data, offset = MALFORMED_REGISTERS[case]
    arena, pieces, _ = pack([(b"", []), (data, [])])
    with pytest.raises(MalformedDebugSection) as caught:
        rebuild_reg_sass(arena, pieces, b"")
    assert (caught.value.piece, caught.value.offset) == (1, offset)


def test_names_without_an_end_are_refused() -> None:
    with pytest.raises(ValueError, match="does not end"):
        rebuild_reg_sass(b"", b"", b"kernel")


def test_damage_in_a_mercury_twin_is_told_apart() -> None:
    arena, pieces, _ = pack([(GOOD, [])])
    with pytest.raises(MalformedDebugSection) as caught:
        rebuild_line(arena, pieces, b"", reference.PIECE.pack(0, 3, 0), b"")
    assert caught.value.mercury


@pytest.mark.parametrize("rebuild", [rebuild_line, rebuild_frame])
def test_tables_that_do_not_fit_each_other_are_refused(rebuild: Rebuild) -> None:
    for offset, size, count in [(5, 0, 0), (0, 5, 0), (1, 2**64 - 1, 0), (0, 4, 1)]:
        with pytest.raises(ValueError, match="piece 0"):
            rebuild(b"data", reference.PIECE.pack(offset, size, count), b"")
    with pytest.raises(ValueError, match="whole rows"):
        rebuild(b"", b"", b"odd")
    with pytest.raises(ValueError, match="no piece"):
        rebuild(b"", b"", reference.RELOC.pack(0, 0, 0))
