"""The order in which the links of a device-link step begin."""

from __future__ import annotations

import pytest

from pylink.devicelink.links import order_to_begin


@pytest.mark.parametrize(
    ("archs", "order"),
    [
        ("75 80 86 90 100 120", [5, 3, 4, 2, 1, 0]),
        ("75 80 90a", [2, 1, 0]),
        ("100f 103 120", [2, 1, 0]),
        ("75 100 110 121a", [3, 0, 2, 1]),
        ("90", [0]),
    ],
)
def test_long_links_begin_first_and_alternate_with_short_ones(archs: str, order: list[int]) -> None:
    assert order_to_begin([f"sm_{arch}" for arch in archs.split()]) == order
