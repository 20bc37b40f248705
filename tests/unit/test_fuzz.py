"""Random damage to real cubins ends in an image or in LinkError, whatever the damage."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest
from helpers.cubin_builder import EHDR, SHDR
from hypothesis import given, settings
from hypothesis import strategies as st

import pylink

GOLDEN = Path(__file__).parents[1] / "golden"
# One of each family, with debug data, with calls, and an object of a relocatable link.
CASES = [("75", "calls"), ("75", "debug"), ("90a", "calls"), ("100", "calls"), ("100", "debug")]
FIELDS = [(0, 4), (4, 4), (8, 8), (24, 8), (32, 8), (40, 4), (44, 4), (48, 8), (56, 8)]
EXTREMES = [0, 1, 0x7FFF, 0xFFFF, 1 << 31, (1 << 32) - 1, 1 << 40, 1 << 63, (1 << 64) - 1]


def modules(arch: str, case: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((GOLDEN / arch / case).glob("m*.cubin"))]


def survive(arch: str, images: list[bytes]) -> None:
    inputs = [(f"m{number}", image) for number, image in enumerate(images)]
    try:
        image = pylink.link(inputs, arch=f"sm_{arch}").image
    except pylink.LinkError:
        return
    assert image[:4] == b"\x7fELF"


@pytest.mark.parametrize(("arch", "case"), CASES)
@given(data=st.data())
@settings(max_examples=150, derandomize=True)
def test_flipped_bytes(arch: str, case: str, data: st.DataObject) -> None:
    images = modules(arch, case)
    image = bytearray(images[0])
    places = st.integers(0, len(image) - 1)
    for at, bits in data.draw(st.lists(st.tuples(places, st.integers(1, 255)), max_size=8)):
        image[at] ^= bits
    survive(arch, [bytes(image), *images[1:]])


@pytest.mark.parametrize(("arch", "case"), CASES)
def test_extreme_header_fields(arch: str, case: str) -> None:
    images = modules(arch, case)
    image = images[0]
    header = EHDR.unpack_from(image)
    rng = random.Random(arch + case)
    for number in range(1, header[12]):
        at, size = rng.choice(FIELDS)
        damaged = bytearray(image)
        value = rng.choice(EXTREMES) % (1 << 8 * size)
        start = header[6] + number * SHDR.size + at
        damaged[start : start + size] = value.to_bytes(size, "little")
        survive(arch, [bytes(damaged), *images[1:]])


@pytest.mark.parametrize(("arch", "case"), CASES)
def test_damaged_words_of_every_section(arch: str, case: str) -> None:
    """Words of contents become small numbers, which look like indices and sizes."""
    images = modules(arch, case)
    image = images[0]
    header = EHDR.unpack_from(image)
    rng = random.Random(case + arch)
    for number in range(1, header[12]):
        row = SHDR.unpack_from(image, header[6] + number * SHDR.size)
        if row[1] == 8 or row[5] < 4 or row[4] + row[5] > len(image):
            continue
        for _ in range(3):
            damaged = bytearray(image)
            at = row[4] + rng.randrange(row[5] - 3)
            struct.pack_into("<I", damaged, at, rng.choice([0, 1, 2, 8, 64, rng.randrange(300)]))
            survive(arch, [bytes(damaged), *images[1:]])


@pytest.mark.parametrize(("arch", "case"), CASES)
def test_truncations(arch: str, case: str) -> None:
    images = modules(arch, case)
    for size in random.Random(arch).sample(range(len(images[0])), 60):
        with pytest.raises(pylink.LinkError):
            pylink.link([images[0][:size], *images[1:]], arch=f"sm_{arch}")
