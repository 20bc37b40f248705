"""What cubins lack, against sets of names."""

from __future__ import annotations

import random

import pytest
from helpers.cubin_builder import LOCAL, Cubin

from pylink._native import selection
from pylink.tables import extent

NAMES = [f"f{number}" for number in range(12)]
SUPPLIED = "vprintf"  # by the driver


@pytest.mark.parametrize("seed", range(30))
def test_names_that_no_file_defines(seed: int) -> None:
    chance = random.Random(seed)
    defined: set[str] = set()
    needed: set[str] = set()
    arena, extents = b"", b""
    for _ in range(chance.randint(0, 4)):
        cubin = Cubin()
        own = set(chance.sample(NAMES, chance.randint(0, 4)))
        local = set(chance.sample(NAMES, chance.randint(0, 2))) - own
        outside = set(chance.sample(NAMES, chance.randint(0, 6))) - own - local
        for name in sorted(local):
            cubin.function(name, bind=LOCAL)
        for name in sorted(own):
            cubin.function(name)
        for name in sorted(outside | {SUPPLIED}):
            cubin.external(name)
        data = cubin.build()
        extents += extent(len(arena), len(data))
        arena += data
        defined |= own
        needed |= outside
    found = selection.find_missing(arena, extents)
    assert found == sorted(name.encode() for name in needed - defined)
    driver = [SUPPLIED.encode()] * bool(extents)
    assert selection.find_missing(arena, extents, with_driver=True) == sorted(found + driver)


def test_damaged_files_lack_nothing() -> None:
    assert selection.find_missing(b"\x7fELF" + bytes(60), extent(0, 64)) == []
    with pytest.raises(IndexError):
        selection.find_missing(b"", extent(0, 64))
