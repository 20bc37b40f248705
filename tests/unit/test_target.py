"""Architectures: which code a target takes, and what .nv.compat of the output says."""

from __future__ import annotations

from struct import pack

import pytest
from helpers.tables import merged as merge_of
from helpers.tables import objects

from pylink._native import notes
from pylink._native.results import ObjectTables
from pylink.facts import sectionkinds
from pylink.facts.compat import pack_rows
from pylink.facts.target import FAMILY_B, FAMILY_C, Target

NAMES = "75 80 86 87 88 89 90 90a 100 100a 100f 103 103a 103f 110 110a 110f 120 120a 120f 121 121a"

# Made for -> numbers of the targets, as nvlink 13.0.88 has it for all pairs.
RUNS_ON = {
    "75": {75},
    "80": {80, 86, 89},
    "86": {86, 89},
    "87": {87},
    "88": {88},
    "89": {89},
    "90": {90},
    "90a": {90},
    "100": {100, 103},
    "100a": {100},
    "100f": {100, 103},
    "103": {103},
    "103a": {103},
    "110": {110},
    "110a": {110},
    "101": {110},  # the name of CUDA 12.8 and 12.9
    "101a": {110},
    "102": set(),
    "120": {120, 121},
    "120a": {120},
    "121": {121},
    "121a": {121},
}


@pytest.mark.parametrize("made_for", RUNS_ON)
def test_which_targets_take_code_for_an_architecture(made_for: str) -> None:
    made = Target(f"sm_{made_for}")
    takers = {
        name
        for name in NAMES.split()
        if Target(f"sm_{name}").accepts_cubin(made.sm, specific=made.specific)
    }
    assert takers == {name for name in NAMES.split() if int(name.rstrip("af")) in RUNS_ON[made_for]}


@pytest.mark.parametrize(
    ("name", "kibibytes"),
    [("75", 48), ("90", 48), ("90a", 227), ("100", 48), ("100a", 227), ("100f", 48), ("120a", 99)],
)
def test_only_one_chip_has_more_static_shared_memory(name: str, kibibytes: int) -> None:
    assert Target(f"sm_{name}").shared_limit == kibibytes * 1024


@pytest.mark.parametrize(
    ("sm", "target", "limited"),
    [(90, "sm_100a", True), (75, "sm_121", True), (75, "sm_90", False), (120, "sm_100", False)],
)
def test_only_code_without_mercury_limits_an_output(sm: int, target: str, limited: bool) -> None:
    assert Target(target).lacks_mercury(sm) is limited


def section(kind: int, data: bytes, number: int = 0) -> dict[str, int]:
    return {"kind": kind, "size": len(data), "file": number}


def compat(*files: bytes, code: bytes | None = None) -> ObjectTables:
    """A .nv.compat section for each file, and code of the first one."""
    rows = [section(sectionkinds.COMPAT, data, number) for number, data in enumerate(files)]
    if code is not None:
        rows.append(section(sectionkinds.TEXT, code))
    at = 0
    for row in rows:
        row["offset"] = at
        at += row["size"]
    arena = b"".join(files) + (code or b"")
    return objects(arena, files=[{}] * max(len(files), 1), sections=rows)


def byte(attribute: int, value: int) -> bytes:
    return bytes((2, attribute, value, 0))


def merged(
    *files: bytes,
    family: int = FAMILY_C,
    specific: bool = False,
    mask: int = 0xFF,
    fastpath: int = 0,
    toolkit: int = 130,
) -> bytes:
    """What becomes of the files' attributes, without the suffix of the target in front."""
    rows = pack_rows(toolkit, family)
    result = notes.merge_compat(
        compat(*files), rows, arch_specific=specific, features=mask, fastpath=fastpath
    )
    assert result[:4] == byte(9, specific)
    return result[4:]


def records(data: bytes) -> dict[int, bytes]:
    """The records of a list by their attribute; a damaged one ends it."""
    found = {}
    while len(data) >= 4:
        size = 4 + (data[2] | data[3] << 8 if data[0] == 4 else 0)
        found[data[1]], data = data[:size], data[size:]
    return found


@pytest.mark.parametrize(
    ("attribute", "number", "other", "result"),
    [
        (2, 1, 3, 3),
        (2, 0, 3, 0),
        (3, 5, 2, 7),
        (5, 6, 9, 10),
        (5, 1, 4, 0),
        (5, 5, 10, 10),
        (5, 4, 12, 12),
        (6, 0, 0, 0),
        (6, 2, 2, 2),
        (6, 0, 2, 1),
    ],
)
def test_unequal_attributes(attribute: int, number: int, other: int, result: int) -> None:
    for pair in ((number, other), (other, number)):
        both = merged(*(byte(attribute, value) for value in pair))
        assert records(both)[attribute] == byte(attribute, result)


def test_what_an_input_lacks_counts_all_the_same() -> None:
    """Seen by leaving out one attribute at a time, sm_90, 90a and 100, nvlink 13.0."""
    lacking = {2: byte(2, 0), 3: byte(3, 3), 5: byte(5, 0), 6: byte(6, 1), 7: bytes((3, 7, 0, 1))}
    for family in (FAMILY_B, FAMILY_C):
        everything = records(merged(b"\1\1\0\0", family=family))
        assert [everything[attribute] for attribute in lacking] == list(lacking.values())
    assert 0x0B in everything  # of the last family
    assert merged(family=FAMILY_B) == b""


def test_a_pair_of_bytes_is_compared_as_a_number() -> None:
    small, large = bytes((3, 7, 0xFF, 0x01)), bytes((3, 7, 0x00, 0x02))
    for pair in ((small, large), (large, small)):
        assert records(merged(*pair))[7] == large


def test_the_suffix_is_that_of_the_target() -> None:
    full = byte(9, 1) + bytes.fromhex(OBJECTS["13.0", FAMILY_B])
    for specific in (False, True):
        assert records(merged(full, family=FAMILY_B, specific=specific)).get(9) is None


def test_features_are_what_all_inputs_and_the_target_have() -> None:
    inputs = [bytes((4, 0x0B, 8, 0)) + pack("<2I", word, 0) for word in (0x59, 0x79)]
    assert records(merged(*inputs, mask=0x50))[0x0B] == inputs[0][:4] + pack("<2I", 0x50, 0)
    assert records(merged(*inputs, mask=0))[0x0B] == inputs[0][:4] + bytes(8)
    assert 0x0B not in records(merged(*inputs, family=FAMILY_B))


def test_code_decides_on_a_feature_that_inputs_lack() -> None:
    record = bytes((4, 0x0B, 8, 0)) + pack("<2I", 0x01, 0)
    inputs = compat(record, code=b"")
    for mask, fastpath, word in ((0x09, 8, 0x09), (0x09, 0, 0x01), (0x01, 8, 0x01)):
        rows = pack_rows(130, FAMILY_C)
        got = notes.merge_compat(
            inputs, rows, arch_specific=False, features=mask, fastpath=fastpath
        )
        assert records(got)[0x0B] == record[:4] + pack("<2I", word, 0)


# .nv.compat of one kernel by ptxas of these releases; 12.9 has none before sm_100.
OBJECTS = {
    ("13.0", FAMILY_B): "02020100 02050500 03070101 02030000 02060100 040b08000000000000000000",
    ("13.5", FAMILY_B): "020c0000 02020100 030d0101 02030000 040b08000000000000000000 030e4004",
    ("13.0", FAMILY_C): "02020100 02050500 03070101 02030000 02060100 040b08000900000000000000",
    ("13.5", FAMILY_C): "020c0000 02020100 030d0101 03070101 02030000 040b08000900000000000000"
    " 030e4004",
    ("12.9", FAMILY_C): "02020100 02050500 02030000 02060100",
}
# Inputs, toolkit, attributes of the output in order; with a value where it is not the input's.
MIXES: list[tuple[int, int, tuple[str, ...], str]] = [
    (130, FAMILY_B, ("13.0",), "02 05 07 03 06"),
    (131, FAMILY_B, ("13.0",), "02 05 07 03"),
    (132, FAMILY_B, ("13.0",), "02 05 07 03 0b"),
    (133, FAMILY_B, ("13.0",), "02 05 07 03 0b 0d=256"),
    (134, FAMILY_B, ("13.0",), "02 05 07 03 0b 0c=2 0d=256"),
    (135, FAMILY_B, ("13.0",), "02 05 07 03 0b 0c=2 0d=256"),
    (130, FAMILY_C, ("13.0",), "02 05 07 03 06 0b"),
    (131, FAMILY_C, ("13.0",), "02 05 07 03 0b"),
    (133, FAMILY_C, ("13.0",), "02 05 07 03 0b 0d=256"),
    (134, FAMILY_C, ("13.0",), "02 05 07 03 0b 0c=2 0d=256 0e=1024"),
    (135, FAMILY_C, ("13.0",), "02 05 07 03 0b 0c=2 0d=256 0e=1088"),
    (135, FAMILY_B, ("13.5",), "0c=0 02 0d=257 03 0b 0e=1088"),
    (135, FAMILY_C, ("13.5",), "0c=0 02 0d=257 07 03 0b 0e=1088"),
    (135, FAMILY_B, ("13.0", "13.5"), "02 07 03 0b 0c=2 0d=257"),
    (135, FAMILY_B, ("13.5", "13.0"), "0c=2 02 0d=257 03 0b 07"),
    (135, FAMILY_C, ("13.0", "13.5"), "02 07 03 0b 0c=2 0d=257 0e=1088"),
    (135, FAMILY_C, ("13.5", "13.0"), "0c=2 02 0d=257 07 03 0b 0e=1088"),
    (130, FAMILY_C, ("12.9",), "02 05 03 06 07=256 0b"),
    (131, FAMILY_C, ("12.9",), "02 05 03 07=256 0b"),
    (132, FAMILY_C, ("12.9",), "02 05 03 07=256 0b"),
    (133, FAMILY_C, ("12.9",), "02 05 03 0d=256 0b"),
    (134, FAMILY_C, ("12.9",), "02 05 03 0c=2 0d=256 0b 0e=1024"),
    (135, FAMILY_C, ("12.9",), "02 05 03 0c=2 0d=256 0b 0e=1088"),
    (130, FAMILY_C, ("12.9", "13.0"), "02 05 03 06 07 0b"),
    (130, FAMILY_C, ("13.0", "12.9"), "02 05 07 03 06 0b"),
    (133, FAMILY_C, ("13.0", "12.9"), "02 05 07 03 0b 0d=256"),
    (135, FAMILY_C, ("12.9", "13.0", "13.5"), "02 03 07 0c=2 0d=257 0b 0e=1088"),
    (135, FAMILY_C, ("13.5", "12.9", "13.0"), "0c=2 02 0d=257 07 03 0b 0e=1088"),
    (135, FAMILY_C, ("12.9", "13.0"), "02 05 03 07 0c=2 0d=256 0b 0e=1088"),
    (135, FAMILY_C, ("12.9", "13.5"), "02 03 07 0c=2 0d=257 0b 0e=1088"),
]


@pytest.mark.parametrize(("toolkit", "family", "names", "expected"), MIXES)
def test_attributes_of_each_release(
    toolkit: int, family: int, names: tuple[str, ...], expected: str
) -> None:
    suffix = {"12.9": ""}
    files = [bytes.fromhex(suffix.get(name, "02090000") + OBJECTS[name, family]) for name in names]
    rows = pack_rows(toolkit, family)
    found = records(
        notes.merge_compat(compat(*files), rows, arch_specific=False, features=0xFF, fastpath=8)
    )
    assert next(iter(found)) == 9
    shown = {7: 0x101, 0x0C: None, 0x0D: None, 0x0E: None}  # what goes without saying
    words = []
    for attribute, record in list(found.items())[1:]:
        value = record[2] | record[3] << 8
        said = f"={value}" if shown.get(attribute, value) != value else ""
        words.append(f"{attribute:02x}{said}")
    assert " ".join(words) == expected


def instruction(form: int, *, plain: bool = True, kind: int = 0) -> bytes:
    """16 bytes of code: operation and operand form, with or without a predicate to combine."""
    return pack("<QBBBB4x", form, 0, kind, 0xF0 if plain else 0x70, 0x03 if plain else 0x04)


@pytest.mark.parametrize(
    ("code", "bits"),
    [
        (instruction(0x7221), 8),  # FADD
        (instruction(0x7229), 0),  # DADD
        (instruction(0x782B), 0),  # DFMA
        (instruction(0x7828), 0),  # DMUL
        (instruction(0x720B), 8),  # FSETP of two registers
        (instruction(0x780B), 0),  # FSETP with a constant
        (instruction(0x780B, plain=False), 8),
        (instruction(0x722A), 0),  # DSETP of two registers
        (instruction(0x742A), 8),  # DSETP with a constant
        (instruction(0x742A, plain=False), 0),
        (instruction(0x7237), 0),  # IMMA
        (instruction(0x75EA, kind=1), 0),  # tcgen05.mma of integers
        (instruction(0x75EA, kind=3), 8),
        (instruction(0x7221) * 9 + instruction(0x7229), 0),
        (instruction(0x7221) + instruction(0x7229)[:9], 8),
    ],
)
def test_instructions_off_the_fast_path(code: bytes, bits: int) -> None:
    inputs = compat(code=code)
    assert notes.fastpath_bits(merge_of(inputs, out_of=pack("<i", 4))) == bits
    assert notes.fastpath_bits(merge_of(inputs, out_of=pack("<i", -1))) == 8


@pytest.mark.parametrize(("word", "bits"), [(0x09, 8), (0x01, 0)])
def test_code_of_a_file_that_promises_is_not_searched(word: int, bits: int) -> None:
    inputs = compat(bytes((4, 0x0B, 8, 0)) + pack("<2I", word, 0), code=instruction(0x7229))
    assert notes.fastpath_bits(merge_of(inputs, out_of=pack("<2i", 3, 4))) == bits


def test_damaged_records_change_nothing() -> None:
    long = bytes((4, 2, 0, 0))
    assert records(merged(long, bytes((4, 2, 4, 0)) + bytes(4), byte(2, 1)[:3]))[2] == long


def test_virtual_architectures_of_inputs() -> None:
    """The extremes of what files say, with the first file that has each."""

    def files(*numbers: int) -> ObjectTables:
        return objects(files=[{"ptx_sm": number} for number in numbers])

    def found(inputs: ObjectTables) -> tuple[int, int, int, int, int]:
        archs = notes.find_virtual_archs(inputs)
        lowest = archs.lowest, archs.lowest_file, archs.lowest_count
        return (*lowest, archs.highest, archs.highest_file)

    assert found(files(90, 80, 0xFFFF, 80, 100, 80)) == (80, 1, 3, 100, 4)
    assert found(files(90)) == (90, 0, 1, 90, 0)
    assert found(files(0xFFFF)) == (0, -1, 0, 0, -1)
    assert found(objects()) == (0, -1, 0, 0, -1)
