"""Objects of CUDA 11.8 to 12.9: how headers are read, what is refused, what becomes of them."""

from __future__ import annotations

import struct

import pytest
from helpers.cubin_builder import SHT_INFO, Cubin, Section, one_kernel

import pylink
from pylink.facts.objectformats import OBJECT_FORMATS, sm_of_cubin
from pylink.inspect.image import Image

EARLY_SM_80 = 0x00500550
EARLY_SM_90A = 0x005A0D5A
WIDE = 0x400
TEXT_FLAGS = 6
BARRIERS = 20  # first bit in sh_flags
NUM_BARRIERS = 0x4C


def early(
    cubin: Cubin,
    *,
    toolkit: int = 129,
    e_flags: int = EARLY_SM_80,
    ident: tuple[int, int] = (0x33, 7),
    name: str = "m.o",
) -> pylink.Input:
    """The cubin with the header of an older toolkit."""
    image = bytearray(cubin.build())
    image[7:9] = bytes(ident)
    struct.pack_into("<I", image, 20, toolkit)
    struct.pack_into("<I", image, 48, e_flags)
    return pylink.Input(bytes(image), name=name)


def refusal(source: pylink.Input, arch: str) -> list[str]:
    with pytest.raises(pylink.LinkError) as caught:
        pylink.link([source], arch=arch)
    return [found.message for found in caught.value.diagnostics]


def records(image: bytes, section: str) -> list[tuple[int, int]]:
    """Attribute and 16-bit value of each short record."""
    (found,) = [candidate for candidate in Image(image).sections if candidate.name == section]
    data = Image(image).content(found)
    result, at = [], 0
    while at < len(data):
        form, attribute, value = struct.unpack_from("<BBH", data, at)
        result.append((attribute, value))
        at += 4 + (value if form == 4 else 0)
    return result


def flags_of(image: bytes, section: str) -> int:
    (found,) = [candidate for candidate in Image(image).sections if candidate.name == section]
    return found.flags


def with_barriers(**counts: int) -> Cubin:
    """A kernel k that calls f, with the barriers that each uses in sh_flags."""
    cubin = Cubin()
    kernel, function = cubin.function("k", kernel=True), cubin.function("f")
    cubin.call(kernel, function)
    text = cubin.find(".text.f")
    cubin.section(Section(".nv.info.f", SHT_INFO, struct.pack("<BBH", 1, 0x35, 0), 0x40, 3, text))
    for name, count in counts.items():
        code = cubin.sections[cubin.find(f".text.{name}") - 1]
        code.flags |= count << BARRIERS
    return cubin


def test_the_output_has_the_form_of_the_release_followed() -> None:
    image = pylink.link([early(one_kernel("k"))], arch="sm_80").image
    assert image[7:9] == b"\x41\x08"
    assert struct.unpack_from("<I", image, 20) == (1,)
    assert sm_of_cubin(image) == 80


@pytest.mark.parametrize(("made_from", "expected"), [(80, 80), (75, 75), (90, 80)])
def test_the_virtual_architecture_is_in_the_flags(made_from: int, expected: int) -> None:
    e_flags = EARLY_SM_80 & ~0xFF0000 | made_from << 16
    image = pylink.link([early(one_kernel("k"), e_flags=e_flags)], arch="sm_80").image
    note = image.index(struct.pack("<III", 12, 8, 1000))
    assert struct.unpack_from("<2H", image, note + 24) == (2, expected)


@pytest.mark.parametrize(
    ("source", "arch", "words"),
    [
        (early(one_kernel()), "sm_75", "arch does not match target 'sm_75'"),
        (early(one_kernel(), ident=(0x33, 8)), "sm_80", "abi does not match"),
        (early(one_kernel(), ident=(0x41, 7)), "sm_80", "abi does not match"),
        (
            early(one_kernel(), e_flags=EARLY_SM_80 | 1 << 31),
            "sm_80",
            "m.o: e_flags 0x80500550 have bits that no toolkit sets",
        ),
        (early(one_kernel(), toolkit=136), "sm_80", "newer than toolkit (136 vs 135)"),
        (early(one_kernel(), toolkit=0xFFFFFFFF), "sm_80", "newer than toolkit (-1 vs 135)"),
        (
            early(one_kernel(), toolkit=118, e_flags=EARLY_SM_90A),
            "sm_90",
            "must be recompiled with toolkit >= Cuda 12.0",
        ),
    ],
)
def test_refusals_are_in_the_words_of_nvlink(source: pylink.Input, arch: str, words: str) -> None:
    assert refusal(source, arch)[-1].endswith(words)


def test_a_refused_object_says_which_toolkit_made_it() -> None:
    cubin = early(one_kernel(), toolkit=118, e_flags=EARLY_SM_90A)
    with pytest.raises(pylink.LinkError) as caught:
        pylink.link([cubin], arch="sm_90a")
    (error,) = caught.value.diagnostics
    assert [note.message for note in error.notes] == [
        "it was compiled with CUDA 11.8; compile it with CUDA 12.0 or a later release"
    ]


def test_code_for_sm_80_has_no_lower_bound() -> None:
    assert pylink.link([early(one_kernel(), toolkit=1)], arch="sm_80").image


def test_addresses_of_32_bits_are_warned_of_and_linked() -> None:
    inputs = [
        early(one_kernel(name), e_flags=EARLY_SM_80 & ~WIDE, name=f"{name}.o") for name in "ab"
    ]
    result = pylink.link(inputs, arch="sm_80")
    assert [diagnostic.message for diagnostic in result.diagnostics] == [
        f"expected 64bit object '{name}.o' to have EF_CUDA_64BIT_ADDRESS set" for name in "ab"
    ]


def test_barriers_become_records_of_an_executable() -> None:
    image = pylink.link([early(with_barriers(k=1, f=4))], arch="sm_80").image
    assert flags_of(image, ".text.k") == flags_of(image, ".text.f") == TEXT_FLAGS
    assert records(image, ".nv.info.k")[-1] == (NUM_BARRIERS, 4)  # that of f is the larger one


def test_barriers_stay_in_a_relocatable_output() -> None:
    image = pylink.link([early(with_barriers(k=1, f=4))], arch="sm_80", relocatable_link=True).image
    assert flags_of(image, ".text.k") == TEXT_FLAGS | 1 << BARRIERS
    assert NUM_BARRIERS not in dict(records(image, ".nv.info.k"))


def test_formats_are_told_by_their_first_bytes() -> None:
    assert len({row.os_abi for row in OBJECT_FORMATS}) == len(OBJECT_FORMATS)
    assert sm_of_cubin(early(one_kernel(), e_flags=EARLY_SM_90A).data or b"") == 90
    assert sm_of_cubin(one_kernel().build()) == 80
    assert sm_of_cubin(b"") == 0
