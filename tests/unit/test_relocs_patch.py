"""Writing relocated fields: the kernel against plain arithmetic."""

from __future__ import annotations

import random

import pytest
from helpers.contents import patched
from helpers.relocs_reference import FIELDS, Patch, pack, patch_numpy, patch_reference


def draw(rng: random.Random, size: int, count: int) -> list[Patch]:
    """Patches of all types at any offset; fields may overlap."""
    return [
        (
            rng.randrange(size - 7),
            rng.choice([rng.getrandbits(64), rng.getrandbits(20), 2**64 - 1, 0]),
            rng.choice(list(FIELDS)),
            rng.randrange(18),
            rng.randrange(2),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_patch_agrees_with_reference(seed: int) -> None:
    rng = random.Random(seed)
    image = bytearray(rng.randbytes(rng.randrange(64, 4096)))
    patches = [
        patch
        for patch in draw(rng, len(image), 300)
        if sum(FIELDS[patch[2]][1:]) <= 64  # fields end in the eight bytes
    ]
    got = patched(bytes(image), pack(patches))
    patch_reference(image, patches)
    assert got == (-1, bytes(image))


def test_numpy_agrees_with_reference() -> None:
    rng = random.Random(1)
    image = bytearray(rng.randbytes(16 * 200))
    patches = [
        (16 * i, rng.getrandbits(64), rng.choice((1, 2, 55, 56, 57)), 0, 0) for i in range(200)
    ]
    expected = bytearray(image)
    patch_reference(expected, patches)
    patch_numpy(image, pack(patches).data)
    assert image == expected


@pytest.mark.parametrize(
    ("patch", "good"),
    [
        ((8, 1, 2, 0, 0), True),  # 64 bits that end with the image
        ((9, 1, 2, 0, 0), False),
        ((12, 1, 1, 0, 0), True),
        ((13, 1, 1, 0, 0), False),
        ((15, 1, 76, 0, 0), True),  # one byte
        ((16, 1, 76, 0, 0), False),
        ((2**64 - 4, 1, 1, 0, 0), False),  # the end of the field wraps
        ((0, 1, 200, 0, 0), False),  # no such type
    ],
)
def test_patch_stays_inside_the_image(patch: Patch, good: bool) -> None:
    bad, _ = patched(bytes(16), pack([(0, 7, 1, 0, 0), patch]))
    assert bad == (-1 if good else 1)
