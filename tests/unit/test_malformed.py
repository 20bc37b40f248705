"""Damaged cubins: one error that names the file, the place and the reason, and no output."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from helpers.cubin_builder import (
    COMMON,
    EHDR,
    GLOBAL,
    IN_GLOBAL,
    IN_SHARED,
    SHDR,
    SHT_CALLGRAPH,
    SHT_GLOBAL,
    SHT_INFO,
    SHT_PROGBITS,
    SHT_SHARED,
    Cubin,
    Section,
    Symbol,
    one_kernel,
)

import pylink

KERNEL = "kernel"


def sample() -> Cubin:
    """A kernel that calls a function and uses variables, so that every table has rows."""
    cubin = one_kernel()
    helper = cubin.function("helper", registers=32, frame=8)
    cubin.call(1, helper)
    cubin.call_through(1, "v i")
    cubin.take_address(helper, "v i")
    room = cubin.section(Section(".nv.global", SHT_GLOBAL, flags=3, size=64, align=8))
    cubin.symbol(Symbol("variable", other=IN_GLOBAL, section=room, value=8, size=4))
    text = cubin.find(".text.kernel")
    own = cubin.section(Section(".nv.shared.kernel", SHT_SHARED, flags=0x43, size=32, info=text))
    cubin.symbol(Symbol("own", bind=0, other=IN_SHARED, section=own, value=8, size=16))
    cubin.symbol(Symbol("common", other=IN_GLOBAL, section=COMMON, value=4, size=4))
    cubin.relocate(text, [(0, 56, helper, 0), (16, 57, helper, 0)], implicit=True)
    cubin.relocate(text, [(32, 56, 3, 4)])
    return cubin


def refusal(image: bytes, *, arch: str = "sm_80") -> str:
    """The message about the damage; a link that works fails the test."""
    with pytest.raises(pylink.LinkError) as caught:
        pylink.link([("a.cubin", image)], arch=arch)
    (record,) = caught.value.diagnostics
    return record.message


def test_the_sample_links() -> None:
    assert pylink.link([("a.cubin", sample().build())], arch="sm_80").image[:4] == b"\x7fELF"


def test_every_truncation_is_refused() -> None:
    image = sample().build()
    for size in range(len(image)):
        message = refusal(image[:size])
        begins = "a.cubin: " if size >= 64 else "Could not open input file 'a.cubin'"
        assert message.startswith(begins if size else "Input file 'a.cubin' is empty"), size


def test_another_operating_system_interface_is_named_before_it_is_refused() -> None:
    image = sample().build()
    with pytest.raises(pylink.LinkError) as caught:
        pylink.link([("a.cubin", image[:7] + b"\0" + image[8:])], arch="sm_80")
    assert [record.message for record in caught.value.diagnostics] == [
        "expected 64bit object 'a.cubin' to have EF_CUDA_64BIT_ADDRESS set",
        "Input file 'a.cubin' abi does not match",
    ]


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        (0, b"\x7fELG", "cubin not an elf? (a.cubin)"),
        (4, b"\1", "Input file 'a.cubin' is not a 64-bit ELF file"),
        (4, b"\0", "Input file 'a.cubin' is not a 64-bit ELF file"),
        (5, b"\2", "Input file 'a.cubin' is not little-endian"),
        (8, b"\7", "Input file 'a.cubin' abi does not match"),
        (
            16,
            b"\2\0",
            "Input file 'a.cubin' is not relocatable (ELF type 2); compile it with -rdc=true or "
            "-dc",
        ),
        (18, b"\x3e\0", "cubin not a device elf? (a.cubin)"),
        (40, b"\xff" * 8, "a.cubin: section header table lies outside the file"),
        (40, b"\xf0\xff" + b"\xff" * 6, "a.cubin: section header table lies outside the file"),
        (40, bytes(8), "a.cubin: section header table lies outside the file"),
        (58, b"\x3f\0", "a.cubin: section header table lies outside the file"),
        (60, b"\xff\xff", "a.cubin: section header table lies outside the file"),
        (60, b"\1\0", "a.cubin: section header table lies outside the file"),
        (60, b"\0\0", "a.cubin: section header table lies outside the file"),
        (62, b"\xee\0", "a.cubin: section header table lies outside the file"),
    ],
)
def test_elf_header(offset: int, value: bytes, message: str) -> None:
    image = bytearray(sample().build())
    image[offset : offset + len(value)] = value
    assert refusal(bytes(image)) == message


@dataclass
class Damage:
    """What becomes of one field of a section header."""

    section: str
    field: str
    value: int
    message: str


OFFSETS = {
    name: (at, size)
    for name, at, size in (
        ("name", 0, 4),
        ("type", 4, 4),
        ("offset", 24, 8),
        ("size", 32, 8),
        ("link", 40, 4),
        ("info", 44, 4),
        ("align", 48, 8),
        ("entsize", 56, 8),
    )
}
ALL = 2**64 - 1


@pytest.mark.parametrize(
    "damage",
    [
        Damage(".text.kernel", "name", 0xFFFF, "section 4: name offset 65535 lies outside the "),
        Damage(".text.kernel", "offset", ALL, ".text.kernel: section contents lie outside the "),
        Damage(".text.kernel", "size", ALL, ".text.kernel: section contents lie outside the file"),
        Damage(".text.kernel", "size", ALL - 127, ".text.kernel: section contents lie outside the"),
        Damage(".text.kernel", "size", 24, ".symtab[1]: symbol lies outside its section"),
        Damage(".text.kernel", "size", 136, ".text.kernel: size 136 is not a multiple of the "),
        Damage(".text.kernel", "type", 8, ".text.kernel: section of unknown type 0x8"),
        Damage(".text.kernel", "info", 0, ".text.kernel: invalid sh_info 0"),
        Damage(".text.kernel", "info", 99, ".text.kernel: invalid sh_info 99"),
        Damage(".text.kernel", "info", 2, ".text.kernel: invalid sh_info 2"),
        Damage(".text.kernel", "align", 24, ".text.kernel: alignment 24 is not a power of two"),
        Damage(".text.kernel", "align", 1 << 20, ".text.kernel: alignment 1048576 is larger than "),
        Damage(".nv.global", "size", 1 << 50, ".nv.global: size 1125899906842624 is larger than "),
        Damage(".symtab", "entsize", 16, ".symtab: entry size is 16, not 24"),
        Damage(".symtab", "size", 25, ".symtab: size 25 is not a multiple of the entry size 24"),
        Damage(".symtab", "size", 0, ".symtab: size 0 is not a multiple of the entry size 24"),
        Damage(".symtab", "link", 4, ".symtab: invalid sh_link 4"),
        Damage(".symtab", "type", 1, ".symtab: this name is not allowed for a section of type 0x1"),
        Damage(".strtab", "size", 3, ".strtab: string table does not end with a zero byte"),
        Damage(".shstrtab", "size", 3, "section 1: string table does not end with a zero byte"),
        Damage(".rela.text.kernel", "info", 99, ".rela.text.kernel: invalid sh_info 99"),
        Damage(".rela.text.kernel", "info", 3, ".rela.text.kernel: invalid sh_info 3"),
        Damage(".rela.text.kernel", "type", 1, ".rela.text.kernel: this name is not allowed for"),
        Damage(".rela.text.kernel", "entsize", 16, ".rela.text.kernel: entry size is 16, not 24"),
        Damage(".rel.text.kernel", "size", 17, ".rel.text.kernel: size 17 is not a multiple of "),
        Damage(".nv.info.kernel", "info", 2, ".nv.info.kernel: invalid sh_info 2"),
        Damage(".nv.info", "size", 5, ".nv.info+0x0: attribute is damaged: it needs 12 bytes, and"),
        Damage(".nv.callgraph", "size", 12, ".nv.callgraph: size 12 is not a multiple of the "),
    ],
    ids=lambda damage: f"{damage.section}-{damage.field}-{damage.value:x}",
)
def test_section_header(damage: Damage) -> None:
    cubin = sample()
    image = bytearray(cubin.build())
    names = [section.name for section in cubin.sections] + [".nv.info", ".nv.callgraph"]
    at, size = OFFSETS[damage.field]
    at += cubin.table + (names.index(damage.section) + 1) * SHDR.size
    image[at : at + size] = damage.value.to_bytes(size, "little")
    assert refusal(bytes(image)).startswith("a.cubin: " + damage.message)


def _records(data: bytes) -> Callable[[Cubin], object]:
    def change(cubin: Cubin) -> None:
        cubin.records = data

    return change


def _symbol(**fields: int | str) -> Callable[[Cubin], object]:
    return lambda cubin: cubin.symbol(Symbol("x", **fields))  # type: ignore[arg-type]


def _calls(data: bytes) -> Callable[[Cubin], object]:
    def change(cubin: Cubin) -> None:
        cubin.calls.clear()
        cubin.section(Section(".nv.callgraph", SHT_CALLGRAPH, data, link=3, entsize=8))

    return change


def _relocs(*entry: int) -> Callable[[Cubin], object]:
    rows = (entry[0], entry[1], entry[2], 0)
    return lambda cubin: cubin.relocate(cubin.find(".text.helper"), [(0, 56, 1, 0), rows])


PAIRS = struct.pack("<IiIi", 0, -1, 1, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            _relocs(0, 56, 99),
            ".rela.text.helper[1]: relocation refers to symbol 99, which does not exist",
        ),
        (_relocs(0, 255, 1), ".rela.text.helper[1]: unknown relocation type 255"),
        (
            _relocs(121, 56, 1),
            ".rela.text.helper[1]: relocated field at offset 121 lies outside its section",
        ),
        (
            _relocs(ALL, 56, 1),
            f".rela.text.helper[1]: relocated field at offset {ALL} lies outside its section",
        ),
        (_symbol(section=77), ".symtab[6]: symbol is in section 77, which does not exist"),
        (_symbol(section=0xFF00), ".symtab[6]: symbol is in section 65280, which does not exist"),
        (_symbol(section=0xFFFF), ".symtab[6]: symbol is in section 65535, which does not exist"),
        (_symbol(bind=10), ".symtab[6]: symbol has unknown binding or type 10"),
        (_symbol(section=8, value=60, size=5), ".symtab[6]: symbol lies outside its section"),
        (_symbol(section=8, value=ALL, size=2), ".symtab[6]: symbol lies outside its section"),
        (_symbol(section=9, value=ALL, size=2), ".symtab[6]: alignment"),
        (_symbol(section=9, value=24), ".symtab[6]: alignment 24 of the variable is not a power"),
        (_symbol(section=COMMON, value=3), ".symtab[6]: alignment 3 of the variable is not a "),
        (_symbol(size=1 << 41), ".symtab[6]: size 2199023255552 is larger than any real one"),
        (
            _symbol(section=9, value=8, size=1 << 32),
            ".symtab[6]: size 4294967296 is larger than any real one (4294967295 at most)",
        ),
        (_symbol(other=IN_SHARED, value=9), ".symtab[6]: alignment 9 of the variable is not a "),
        (
            _symbol(other=IN_SHARED, section=8),
            ".symtab[6]: section 8 cannot hold a symbol of this type",
        ),
        (_symbol(type=2, section=9), ".symtab[6]: section 9 cannot hold a symbol of this type"),
        (_symbol(section=4), ".symtab[6]: section 4 cannot hold a symbol of this type"),
        (
            _records(struct.pack("<BBHII", 4, 0x2F, 8, 77, 0)),
            ".nv.info+0x0: attribute is damaged: it names symbol 77, which does not exist",
        ),
        (
            _records(struct.pack("<BBHBBH", 1, 2, 3, 5, 2, 3)),
            ".nv.info+0x4: attribute is damaged: format 5",
        ),
        (
            _records(struct.pack("<BBHI", 4, 0x11, 4, 1)),
            ".nv.info+0x0: attribute is damaged: it has 4 bytes of data",
        ),
        (
            _records(struct.pack("<BBHI", 4, 9, 0xFFFF, 1)),
            ".nv.info+0x0: attribute is damaged: it needs 65539 bytes, and 8 are left",
        ),
        (
            _records(struct.pack("<BBH", 3, 0x1E, 9)),
            ".nv.info+0x0: attribute is damaged: format 3",
        ),
        (
            _calls(PAIRS + struct.pack("<II", 1, 99)),
            ".nv.callgraph[2]: call graph row is damaged: it names symbol 99, which does not exist",
        ),
        (
            _calls(PAIRS + struct.pack("<II", 99, 1)),
            ".nv.callgraph[2]: call graph row is damaged: it names symbol 99, which does not exist",
        ),
        (
            _calls(struct.pack("<IiII", 0, -3, 1, 999)),
            ".nv.callgraph[1]: call graph row is damaged: string 999 lies outside the string table",
        ),
        (
            _calls(struct.pack("<Ii", 0, -9)),
            ".nv.callgraph[0]: call graph row is damaged: it is in no known block "
            "(marker 0xfffffff7)",
        ),
        (
            _calls(struct.pack("<II", 1, 2)),
            ".nv.callgraph[0]: call graph row is damaged: it is in no known block (marker 0x0)",
        ),
        (
            lambda cubin: cubin.section(
                Section(".nv.info.twice", SHT_INFO, b"", 0x40, 3, cubin.find(".text.kernel"))
            ),
            ".nv.info.twice: duplicate section",
        ),
        (
            lambda cubin: cubin.section(Section(".text.other", SHT_PROGBITS, bytes(16), 6, 3, 1)),
            ".text.other: invalid sh_info 1",
        ),
        (
            lambda cubin: cubin.symbols.__setitem__(0, Symbol("", 2, GLOBAL)),
            ".symtab[0]: the first symbol is not the null symbol",
        ),
    ],
)
def test_contents(change: Callable[[Cubin], object], message: str) -> None:
    cubin = sample()
    change(cubin)
    assert refusal(cubin.build()).startswith("a.cubin: " + message)


def with_wide_indices(count: int) -> Cubin:
    """The sample with sections of symbols in a table of its own, of `count` rows."""
    cubin = sample()
    rows = b""
    for symbol in cubin.symbols[:count]:
        rows += struct.pack("<I", symbol.section if symbol.section < COMMON else 0)
    for symbol in cubin.symbols:
        symbol.section = 0xFFFF if 0 < symbol.section < COMMON else symbol.section
    cubin.section(Section(".symtab_shndx", 18, rows, link=3, entsize=4))
    return cubin


def test_symbols_may_have_their_sections_in_a_table_of_its_own() -> None:
    """As in files of more than 65,279 sections."""
    cubin = with_wide_indices(len(sample().symbols))
    narrow = pylink.link([("a.cubin", sample().build())], arch="sm_80")
    assert pylink.link([("a.cubin", cubin.build())], arch="sm_80").image == narrow.image


def test_that_table_must_have_a_row_for_each_symbol() -> None:
    message = refusal(with_wide_indices(2).build())
    assert message == "a.cubin: .symtab_shndx: it has 2 rows, and there are 6 symbols"


def test_names_that_share_bytes_cannot_multiply_the_work() -> None:
    cubin = one_kernel()
    cubin.symbol(Symbol("n" * 2000, bind=0))
    for _ in range(500):
        cubin.symbol(Symbol("n" * 2000, bind=0))
    assert "names of " in refusal(cubin.build())


def test_alignments_cannot_multiply_the_size() -> None:
    cubin = one_kernel()
    for number in range(40):
        cubin.section(Section(f".debug_{number}", SHT_PROGBITS, b"x", align=1 << 16))
    image = cubin.build()
    packed = bytearray(image[: cubin.table])
    packed = packed[: cubin.starts[7]]  # the contents before the first aligned section
    table = bytearray(image[cubin.table :])
    for number in range(7, len(cubin.sections) + 2):
        struct.pack_into("<QQ", table, number * SHDR.size + 24, 0, 1)
    struct.pack_into("<Q", packed, 40, len(packed))
    assert "sections are aligned to " in refusal(bytes(packed + table))


def test_sections_that_share_bytes_cannot_multiply_the_size() -> None:
    cubin = one_kernel()
    for number in range(40):
        cubin.section(Section(f".debug_{number}", SHT_PROGBITS, align=1))
    image = bytearray(cubin.build())
    for number in range(7, len(cubin.sections) + 1):
        row = cubin.table + number * SHDR.size
        struct.pack_into("<QQ", image, row + 24, 0, cubin.table)
    assert "sections of " in refusal(bytes(image))


def test_mercury_targets_need_a_capsule_per_function() -> None:
    cubin = one_kernel()
    cubin.e_flags = 0x06006402
    assert refusal(cubin.build(), arch="sm_100") == (
        "a.cubin: .text.kernel: the function has no mercury capsule"
    )


def test_the_first_damaged_input_is_named() -> None:
    good, bad = sample().build(), sample().build()[:-1]
    with pytest.raises(pylink.LinkError, match=r"^b\.cubin: section header table"):
        pylink.link([("a.cubin", good), ("b.cubin", bad), ("c.cubin", b"junk")], arch="sm_80")


def test_header_only() -> None:
    image = bytearray(sample().build()[: EHDR.size])
    assert refusal(bytes(image)) == "a.cubin: section header table lies outside the file"
