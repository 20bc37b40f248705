"""Outputs with more sections than 16 bits, or the byte in e_flags, can number."""

from __future__ import annotations

import struct

from helpers.cubin_builder import COMMON, SHDR, SYM, Cubin, Section

import pylink
from pylink.inspect.embedded import InMemory, find_device_code

SHN_LORESERVE = 0xFF00
SHN_XINDEX = 0xFFFF
KERNELS = 9_000  # of each input; each has .text and .nv.info, at least


def many(kernels: int, prefix: str) -> bytes:
    cubin = Cubin()
    for number in range(kernels):
        cubin.function(f"{prefix}{number}", kernel=True)
    return cubin.build()


def headers(image: bytes) -> list[tuple[int, ...]]:
    (table,) = struct.unpack_from("<Q", image, 40)
    (count,) = struct.unpack_from("<H", image, 60)
    if count == 0:
        (count,) = struct.unpack_from("<Q", image, table + 32)
    return [SHDR.unpack_from(image, table + SHDR.size * i) for i in range(count)]


def test_symbols_of_many_sections_have_their_index_in_a_table_of_its_own() -> None:
    inputs = [(f"m{i}.cubin", many(KERNELS, f"k{i}_")) for i in range(4)]
    image = pylink.link(inputs, arch="sm_80").image
    assert struct.unpack_from("<H", image, 60) == (0,)
    sections = headers(image)
    assert len(sections) > SHN_LORESERVE
    names, symtab, wide = sections[1], sections[3], sections[4]
    assert wide[1] == 18  # SHT_SYMTAB_SHNDX
    assert (wide[6], wide[5]) == (3, symtab[5] // SYM.size * 4)
    seen = 0
    for at in range(1, symtab[5] // SYM.size):
        name, info, _, index, _, _ = SYM.unpack_from(image, symtab[4] + SYM.size * at)
        (entry,) = struct.unpack_from("<I", image, wide[4] + 4 * at)
        if index == SHN_XINDEX:
            assert entry >= SHN_LORESERVE
            index = entry
            seen += 1
        if info & 15 != 3 or index == COMMON:
            continue
        text = names[4] + sections[index][0]
        mine = sections[2][4] + name
        assert image[text : image.index(b"\0", text)] == image[mine : image.index(b"\0", mine)]
    assert seen > 1000
    # It is found among other bytes.
    found = list(find_device_code(InMemory(bytes(8) + image + bytes(8)), []))
    assert [(code.start, code.end) for code in found] == [(8, 8 + len(image))]


def test_the_index_of_a_note_that_does_not_fit_is_cut_off() -> None:
    cubin = Cubin()
    cubin.function("kernel", kernel=True)
    for number in range(300):
        cubin.section(Section(f".nv_debug_ptx_txt.{number}", 1, data=b"\0"))
    image = pylink.link([("a.cubin", cubin.build())], arch="sm_80").image
    assert image[51] == 0xFF
