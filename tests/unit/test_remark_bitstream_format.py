"""Remarks as a bitstream: both containers, what is read back, and what damaged files get."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.remark_samples import SAMPLE, any_remark, bitstream_reference, write_and_read
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pylink.facts.bitstreamnumbers import ARRAY, BLOCK_INFO, FIXED, SET_BLOCK, VBR
from pylink.remarks import MalformedRemarks, Remark, read_remarks
from pylink.remarks.bitread import read_bitstream
from pylink.remarks.container import (
    ARGUMENT,
    CONTAINER,
    EXTERNAL,
    HEADER,
    HOTNESS,
    LLVM_19,
    LLVM_22,
    LOCATION,
    MAGIC,
    META,
    REMARK,
    STRINGS,
    VERSION,
    WIDTHS,
    BitWriter,
    encode_block,
    encode_block_info,
    encode_head,
    encode_tail,
)

VERSIONS = pytest.mark.parametrize("version", [LLVM_19, LLVM_22])

once_per_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def decoded(text: str) -> str:
    """A NUL ends a string of the table, so it appears as text."""
    return text.replace("\0", "\\x00")


def as_read(remark: Remark) -> Remark:
    """The remark that comes out for one that goes in."""
    return Remark(
        remark.kind,
        decoded(remark.pass_name),
        decoded(remark.name),
        decoded(remark.function),
        file=None if remark.file is None else decoded(remark.file),
        line=remark.line,
        column=remark.column,
        hotness=remark.hotness,
        args=[
            (decoded(key), decoded(value), None if file is None else decoded(file), line, column)
            for key, value, file, line, column in remark.args
        ],
    )


@VERSIONS
@given(remarks=st.lists(any_remark(), min_size=1, max_size=5))
@once_per_folder
def test_what_is_written_is_read(tmp_path: Path, version: int, remarks: list[Remark]) -> None:
    data = write_and_read(tmp_path, remarks, "bitstream", version)
    assert list(read_bitstream(data, "f")) == [as_read(remark) for remark in remarks]


@VERSIONS
@given(remarks=st.lists(any_remark(st.text(min_size=1)), min_size=1, max_size=5))
@once_per_folder
def test_the_kernel_writes_what_the_table_of_abbreviations_says(
    tmp_path: Path, version: int, remarks: list[Remark]
) -> None:
    data = write_and_read(tmp_path, remarks, "bitstream", version)
    assert data == bitstream_reference(remarks, version)


@VERSIONS
def test_batches_make_no_difference(tmp_path: Path, version: int) -> None:
    remarks = [
        Remark(1, "p", f"n{i % 7}", f"f{i}", file="a", line=i, hotness=1 << (i % 64)).arg("I", i)
        for i in range(1000)
    ]
    data = write_and_read(tmp_path, remarks, "bitstream", version)
    assert data == bitstream_reference(remarks, version)
    assert list(read_bitstream(data, "f")) == remarks


def test_numbers_that_do_not_fit_become_the_greatest() -> None:
    remark = Remark(1, "p", "n", "f", file="a", line=1 << 40, column=-1, hotness=1 << 70)
    assert (remark.line, remark.column, remark.hotness) == ((1 << 32) - 1, 0, (1 << 64) - 1)


def test_strings_are_numbered_in_order_of_first_use(tmp_path: Path) -> None:
    data = write_and_read(tmp_path, SAMPLE[:2], "bitstream")
    start = data.index(b"merc-dedup\0")
    assert data[start:].rstrip(b"\0").split(b"\0") == [
        b"merc-dedup",
        b"SectionFolded",
        b".nv.merc.text.k",
        b"a.cubin",
        b"String",
        b"folded ",
        b"Bytes",
        b"512",
        b" bytes into ",
        b"Reference",
        b"b.cubin",
        b"SectionRejected",
        b"k.cu",
    ]


@VERSIONS
def test_no_remarks_are_an_empty_file(tmp_path: Path, version: int) -> None:
    assert write_and_read(tmp_path, [], "bitstream", version) == b""
    assert list(read_remarks(tmp_path / "remarks.out")) == []


# Files made by hand: every fault has a name and a place.

STRINGS_OF_ONE = b"p\0n\0f\0a\0"
GOOD = (HEADER, (1, 1, 0, 2))


def plain_block(number: int, *records: tuple[int, tuple[int, ...]]) -> bytes:
    """A block of records without abbreviations."""
    bits = BitWriter()
    for code, values in records:
        bits.write_record(code, values, WIDTHS[number])
    return encode_block(number, bits)


def remark_block(*records: tuple[int, tuple[int, ...]]) -> bytes:
    return plain_block(REMARK, *records)


def container(*remarks: bytes, table: bytes = STRINGS_OF_ONE) -> bytes:
    return encode_head(LLVM_22, None) + b"".join(remarks) + encode_tail(table)


def raw_block(number: int, fill: Callable[[BitWriter], None]) -> bytes:
    bits = BitWriter()
    fill(bits)
    return encode_block(number, bits)


def test_no_record_needs_an_abbreviation() -> None:
    data = (
        MAGIC
        + encode_block_info()
        + plain_block(META, (CONTAINER, (1, 1)), (VERSION, (0,)))
        + remark_block(GOOD, (LOCATION, (3, 7, 8)), (HOTNESS, (1 << 63,)), (ARGUMENT, (0, 1)))
        + encode_tail(STRINGS_OF_ONE)
    )
    (remark,) = read_bitstream(data, "f")
    assert remark == Remark(
        1,
        "p",
        "n",
        "f",
        file="a",
        line=7,
        column=8,
        hotness=1 << 63,
        args=[("p", "n", None, 0, 0)],
    )


def test_a_block_may_define_abbreviations_of_its_own() -> None:
    def fill(bits: BitWriter) -> None:
        bits.define_abbreviation(HEADER, ((FIXED, 3), (ARRAY, 0), (VBR, 4)), 4)
        bits.write_fixed(9, 4)  # behind the five of the block info block
        bits.write_fixed(2, 3)
        bits.write_vbr(3, 6)
        for value in (1, 0, 2):
            bits.write_vbr(value, 4)

    (remark,) = read_bitstream(container(raw_block(REMARK, fill)), "f")
    assert remark == Remark(2, "p", "n", "f")


BOMB = BitWriter()
BOMB.write_fixed(2, 4)
BOMB.write_vbr(3, 5)
BOMB.write_fixed(1, 1)
BOMB.write_vbr(ARGUMENT, 8)
BOMB.write_fixed(0, 1)
BOMB.write_fixed(ARRAY, 3)
BOMB.write_fixed(1, 1)  # its elements are the literal 0, which takes no bits
BOMB.write_vbr(0, 8)
BOMB.write_fixed(9, 4)
BOMB.write_vbr((1 << 60) - 1, 6)


def endless_number(bits: BitWriter) -> None:
    bits.write_fixed(3, 4)
    bits.write_vbr(ARGUMENT, 6)
    bits.write_vbr(1, 6)
    for _ in range(40):
        bits.write_fixed(0b100001, 6)


def many_operands(bits: BitWriter) -> None:
    bits.write_fixed(3, 4)
    bits.write_vbr(ARGUMENT, 6)
    bits.write_vbr((1 << 63) - 1, 6)


def many_abbreviations(bits: BitWriter) -> None:
    for _ in range(100):
        bits.define_abbreviation(HEADER, ((FIXED, 3),), 4)


def nested(bits: BitWriter) -> None:
    bits.write_fixed(1, 4)
    bits.write_vbr(REMARK, 8)
    bits.write_vbr(4, 4)


def info(fill: Callable[[BitWriter], None]) -> bytes:
    return MAGIC + raw_block(BLOCK_INFO, fill)


def info_of_width(width: int, encoding: int) -> bytes:
    def fill(bits: BitWriter) -> None:
        bits.write_record(SET_BLOCK, (REMARK,), 2)
        bits.define_abbreviation(HEADER, ((encoding, width),), 2)

    return info(fill)


# Contents of the first remark block, of the first meta block, and the size of a remark block.
REMARK_AT = len(encode_head(LLVM_22, None)) + 8
META_AT = len(MAGIC + encode_block_info()) + 8
SIZE = len(remark_block(GOOD))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"RMRX" + b"\0" * 60, "byte 0x0: the file does not start with RMRK"),
        (MAGIC, "byte 0x4: the block info block is missing"),
        (MAGIC + b"\0" * 8, "byte 0x4: the block info block is missing"),
        (MAGIC + b"\xff" * 8, "byte 0x4: no block starts here"),
        (
            MAGIC + encode_block_info()[:40],
            "byte 0x4: the file ends within the block that starts here",
        ),
        (MAGIC + encode_block_info(), "the container info is missing"),
        (encode_head(LLVM_22, None), "there are no remarks"),
        (encode_head(LLVM_22, None) + encode_tail(b"a\0"), "there are no remarks"),
        (encode_head(LLVM_19, b"a\0"), "there are no remarks"),
        (encode_head(LLVM_22, None) + remark_block(GOOD), "the string table is missing"),
        (
            encode_head(LLVM_22, STRINGS_OF_ONE) + remark_block(GOOD),
            f"byte {META_AT:#x}: the string table is not allowed here",
        ),
        (
            encode_head(LLVM_19, None) + remark_block(GOOD) + encode_tail(STRINGS_OF_ONE),
            f"byte {REMARK_AT + SIZE:#x}: the string table is not allowed here",
        ),
        (
            container(remark_block(GOOD)) + b"junk",
            f"byte {len(container(remark_block(GOOD))):#x}: no block starts here",
        ),
        (container(remark_block(GOOD), table=b"a"), "the string table does not end with a NUL"),
        (
            MAGIC + encode_block_info() + plain_block(META, (CONTAINER, (7, 1))),
            "container version 7 is unknown",
        ),
        (
            MAGIC + encode_block_info() + plain_block(META, (CONTAINER, (1, 0))),
            "the file shares its remarks with another, which is not read",
        ),
        (
            MAGIC + encode_block_info() + plain_block(META, (VERSION, (1,))),
            "remark version 1 is unknown",
        ),
        (
            MAGIC + encode_block_info() + plain_block(META, (STRINGS, (1,))),
            f"byte {META_AT:#x}: unknown record 3",
        ),
        (
            MAGIC + encode_block_info() + remark_block(GOOD) + plain_block(BLOCK_INFO),
            f"byte {META_AT + SIZE:#x}: block 0 is not allowed in a file of remarks",
        ),
        (
            container(remark_block(GOOD), plain_block(META), remark_block(GOOD)),
            f"byte {REMARK_AT + SIZE:#x}: block 8 among the remarks",
        ),
        (container(remark_block()), f"byte {REMARK_AT:#x}: a remark without a header"),
        (
            container(remark_block((HEADER, (1, 1, 0, 4)))),
            f"byte {REMARK_AT:#x}: a string beyond the 4 of the table",
        ),
        (
            container(remark_block((HEADER, (7, 1, 0, 2)))),
            f"byte {REMARK_AT:#x}: there is no kind 7 of remarks",
        ),
        (
            container(remark_block((HEADER, (1, 1, 0)))),
            f"byte {REMARK_AT:#x}: a remark has no record 5 of 3 operands",
        ),
        (
            container(remark_block(GOOD, (LOCATION, (3, 1 << 32, 0)))),
            f"byte {REMARK_AT:#x}: a line or column has more than 32 bits",
        ),
        (
            container(remark_block(GOOD), table=b"\0n\0f\0"),
            f"byte {REMARK_AT:#x}: a remark needs a pass, a name and a function",
        ),
        (
            container(raw_block(REMARK, endless_number)),
            f"byte {REMARK_AT + 12:#x}: a number has more than 64 bits",
        ),
        (
            container(raw_block(REMARK, many_operands)),
            f"byte {REMARK_AT + 11:#x}: the block ends within a record",
        ),
        (
            container(raw_block(REMARK, many_abbreviations)),
            f"byte {REMARK_AT + 189:#x}: too many abbreviations",
        ),
        (
            container(raw_block(REMARK, nested)),
            f"byte {REMARK_AT:#x}: a block inside a block",
        ),
        (
            container(encode_block(REMARK, BOMB)),
            f"byte {REMARK_AT + 13:#x}: an array is longer than its block",
        ),
        (info_of_width(33, FIXED), "an abbreviation has an operand of a width that does not exist"),
        (info_of_width(1, VBR), "an abbreviation has an operand of a width that does not exist"),
        (info_of_width(0, 6), "an abbreviation has an operand of an unknown encoding"),
        (info_of_width(0, ARRAY), "an abbreviation goes on behind its last operand"),
    ],
)
def test_a_fault_is_named_with_its_place(data: bytes, reason: str) -> None:
    with pytest.raises(MalformedRemarks) as caught:
        list(read_bitstream(data, "bad.bin"))
    text = str(caught.value)
    assert text.startswith("bad.bin: ")
    assert text.endswith(reason)


def test_remarks_elsewhere_are_named() -> None:
    bits = BitWriter()
    bits.define_abbreviation(EXTERNAL, ((5, 0),), 3)
    bits.write_fixed(7, 3)
    bits.write_blob(b"far.bin")
    data = MAGIC + encode_block_info() + encode_block(META, bits)
    with pytest.raises(MalformedRemarks, match=r"the remarks are in another file, far\.bin$"):
        list(read_bitstream(data, "link.bin"))


def test_zeros_behind_the_last_block_are_no_fault() -> None:
    assert len(list(read_bitstream(container(remark_block(GOOD)) + b"\0" * 12, "f"))) == 1


def read_or_refuse(data: bytes) -> list[Remark] | str:
    try:
        return list(read_bitstream(data, "bad"))
    except MalformedRemarks as error:
        return str(error)


@VERSIONS
def test_a_cut_file_is_refused_unless_cut_between_remarks(version: int) -> None:
    data = bitstream_reference(SAMPLE, version)
    for size in range(1, len(data)):
        found = read_or_refuse(data[:size])
        if isinstance(found, str):
            assert found.startswith("bad: ")
        else:  # version 0 has nothing behind the remarks that could be missed
            assert version == LLVM_19
            assert found == SAMPLE[: len(found)]


@VERSIONS
def test_a_damaged_file_is_read_or_refused(version: int) -> None:
    data = bitstream_reference(SAMPLE, version)
    rng = random.Random(version)
    refused = 0
    for _ in range(1000):
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(4, len(data))] = rng.choice((0, 255, rng.randrange(256)))
        found = read_or_refuse(bytes(damaged))
        refused += isinstance(found, str)
        assert isinstance(found, list) or found.startswith("bad: ")
    assert refused > 300
