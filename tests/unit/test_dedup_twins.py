"""The search for equal sections across a build, against a plain one."""

from __future__ import annotations

import array
import random

import pytest

from pylink._native.twins import find_twins


def twins_reference(sections: list[bytes], relocations: list[bytes]) -> list[int]:
    seen: dict[tuple[bytes, bytes], int] = {}
    rows = zip(sections, relocations, strict=True)
    return [seen.setdefault(pair, row) for row, pair in enumerate(rows)]


@pytest.mark.parametrize("bits", [0, 1, 0xFFFF_FFFF_FFFF_FFFF], ids=["one", "two", "all"])
@pytest.mark.parametrize("count", [0, 1, 2, 300])
def test_twins_agree_with_reference(count: int, bits: int) -> None:
    rng = random.Random(count)
    sections = [rng.randbytes(rng.randrange(3)) for _ in range(count)]
    relocations = [rng.choice((b"", b"a", b"ab")) for _ in range(count)]
    pairs = zip(sections, relocations, strict=True)
    keys = [hash(pair) & bits for pair in pairs]
    twins = find_twins(list(sections), list(relocations), keys)
    assert list(array.array("q", twins.leaders)) == twins_reference(sections, relocations)


def test_rows_of_other_keys_are_never_compared() -> None:
    twins = find_twins([b"a", b"a"], [b"", b""], [1, 2])
    assert (twins.comparisons, twins.bytes_compared) == (0, 0)


def test_the_work_is_counted() -> None:
    """The third row is compared with both leaders: 1 byte, then 4 and its empty relocations."""
    twins = find_twins([b"abcd", b"xbcd", b"xbcd"], [b""] * 3, [7] * 3)
    assert list(array.array("q", twins.leaders)) == [0, 1, 1]
    assert (twins.comparisons, twins.bytes_compared) == (1 + 1 + 2, 1 + 1 + 4)


def test_columns_must_agree() -> None:
    with pytest.raises(ValueError, match="differ in length"):
        find_twins([b"a"], [], [1])
    with pytest.raises(OverflowError):
        find_twins([b"a"], [b""], [-1])
