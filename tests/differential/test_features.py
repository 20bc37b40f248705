"""One program for each feature of CUDA C++ and PTX: every kind of link equals nvlink's.

`make test` links each row for one chip by one release, `make features` for all of them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from differential.features import linked
from differential.features.table import Row, rows
from helpers import oracle

ROWS = list(rows())
ALL = os.environ.get("PYLINK_FEATURES") == "all"
AT_HAND = [oracle.DEFAULT, *oracle.others()]


def _chosen(number: int, row: Row) -> list[tuple[str, str]]:
    """The chips and releases that a row is linked for: all, or one of each in turn."""
    releases = [release for release in row.releases if release in AT_HAND]
    every = [(chip, release) for release in releases for chip in row.chips]
    return every if ALL or not every else [every[number % len(every)]]


def _parameters() -> list[Any]:
    return [
        pytest.param(row, chip, release, id=f"{row.name}-{chip}-{release}")
        for number, row in enumerate(ROWS)
        for chip, release in _chosen(number, row)
    ]


@oracle.needs_oracle
@pytest.mark.parametrize(("row", "chip", "release"), _parameters())
def test_a_feature(row: Row, chip: str, release: str, tmp_path: Path) -> None:
    kinds = [kind for kind in linked.KINDS if kind not in row.skip]
    with oracle.release(release):
        names = linked.compiled(row, chip, release, tmp_path)
        found = {kind: linked.differences(row, kind, chip, names, tmp_path) for kind in kinds}
    new = {
        kind: lines[:3]
        for kind, lines in found.items()
        if lines and not row.waits(kind, chip, release)
    }
    assert new == {}
    equal = [
        kind for kind, lines in found.items() if lines == [] and row.waits(kind, chip, release)
    ]
    assert equal == [], f"{row.place}: {row.name}: links that are open became equal"


def test_names_are_unique_and_there_are_enough() -> None:
    names = [row.name for row in ROWS]
    assert len(names) == len(set(names))
    assert len(names) >= 250
