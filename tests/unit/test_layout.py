"""Where the sections of an output lie: aligned, apart from each other, inside the file."""

from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path

import pytest
from helpers.cubin_builder import (
    COMMON,
    EHDR,
    IN_GLOBAL,
    SHDR,
    SHT_GLOBAL_INIT,
    SYM,
    Cubin,
    Section,
    Symbol,
    one_kernel,
)

import pylink

GOLDEN = Path(__file__).parents[1] / "golden"
ARCHS = ("75", "90a", "100")
NOBITS = (8, 0x70000007, 0x70000009, 0x7000000A, 0x70000015)
PHDR = struct.Struct("<IIQQQQQQ")


class Parsed:
    """Headers of an image, read without the product."""

    def __init__(self, image: bytes) -> None:
        self.image = image
        header = EHDR.unpack_from(image)
        self.table, count = header[6], header[12]
        self.rows = [SHDR.unpack_from(image, self.table + i * SHDR.size) for i in range(count)]
        self.segments = [PHDR.unpack_from(image, header[5] + i * 56) for i in range(header[10])]
        self.names = [self.text(self.rows[header[13]], row[0]) for row in self.rows]

    def text(self, table: tuple[int, ...], at: int) -> str:
        start = table[4] + at
        return self.image[start : self.image.index(0, start)].decode()

    def contents(self, name: str) -> bytes:
        row = self.rows[self.names.index(name)]
        return self.image[row[4] : row[4] + row[5]]

    def symbol(self, name: str) -> tuple[int, ...]:
        table = self.rows[self.names.index(".symtab")]
        strings = self.rows[table[6]]
        for row in SYM.iter_unpack(self.contents(".symtab")):
            if self.text(strings, row[0]) == name:
                return row
        raise KeyError(name)


@pytest.mark.parametrize("relocatable", [False, True])
@pytest.mark.parametrize("arch", ARCHS)
def test_sections_do_not_overlap(arch: str, relocatable: bool) -> None:
    inputs = sorted((GOLDEN / arch / "calls").glob("m*.cubin"))
    result = pylink.link(inputs, arch=f"sm_{arch}", relocatable_link=relocatable)
    parsed = Parsed(result.image)
    assert len(set(parsed.names)) == len(parsed.names)
    extents = []
    for name, row in zip(parsed.names, parsed.rows, strict=True):
        assert row[4] % (row[8] or 1) == 0, name
        if row[1] not in NOBITS:
            extents.append((row[4], row[4] + row[5], name))
    # Mercury twins of constants and initial values share the bytes of their plain sections.
    apart = sorted({(start, end) for start, end, _ in extents if start < end})
    assert all(end <= start for (_, end), (start, _) in pairwise(apart))
    assert apart[0][0] >= EHDR.size
    assert apart[-1][1] <= parsed.table
    end = parsed.table + len(parsed.rows) * SHDR.size + len(parsed.segments) * PHDR.size
    assert end == len(result.image)
    assert bool(parsed.segments) != relocatable
    for segment in parsed.segments:
        assert segment[2] + segment[5] <= len(result.image)
        assert segment[5] <= segment[6]


def data(name: str, contents: bytes, align: int) -> Cubin:
    cubin = Cubin()
    at = cubin.section(Section(".nv.global.init", SHT_GLOBAL_INIT, contents, 3, align=align))
    cubin.symbol(Symbol(name, other=IN_GLOBAL, section=at, size=len(contents)))
    return cubin


def test_pieces_follow_in_input_order_each_aligned() -> None:
    pieces = [("a", b"1" * 3, 1), ("b", b"2" * 5, 8), ("c", b"3" * 2, 2), ("d", b"4" * 4, 64)]
    cubins = [one_kernel(), *(data(*piece) for piece in pieces)]
    parsed = Parsed(pylink.link([cubin.build() for cubin in cubins], arch="sm_80").image)
    offset, expected = 0, b""
    for name, contents, align in pieces:
        offset = -(-offset // align) * align
        assert parsed.symbol(name)[4] == offset
        expected = expected.ljust(offset, b"\0") + contents
        offset += len(contents)
    assert parsed.contents(".nv.global.init") == expected
    assert parsed.rows[parsed.names.index(".nv.global.init")][8] == 64


@pytest.mark.parametrize("sizes", [[1], [4, 8, 1], [1, 1, 16], [100, 3, 7, 64]])
def test_common_symbols_fill_the_end_of_the_section(sizes: list[int]) -> None:
    cubin = one_kernel()
    for number, size in enumerate(sizes):
        align = size & -size
        cubin.symbol(Symbol(f"v{number}", other=IN_GLOBAL, section=COMMON, value=align, size=size))
    parsed = Parsed(pylink.link([cubin.build()], arch="sm_80").image)
    rows = [parsed.symbol(f"v{number}") for number in range(len(sizes))]
    for row, size in zip(rows, sizes, strict=True):
        assert row[5] == size
        assert row[4] % (size & -size) == 0
    extents = sorted((row[4], row[4] + row[5]) for row in rows)
    assert all(end <= start for (_, end), (start, _) in pairwise(extents))
    section = parsed.rows[parsed.names.index(".nv.global")]
    assert section[5] == extents[-1][1]
    assert section[8] == max(size & -size for size in sizes)
