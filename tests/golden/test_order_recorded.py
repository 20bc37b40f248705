"""The order reference against recorded links, and its order of functions against the kernels'."""

from __future__ import annotations

from pathlib import Path

import pytest
from differential import cases
from differential.cases import Case, Expected
from differential.variants import TEXT
from helpers import oracle
from helpers.order import difference, observe, predict, read, selection

from pylink._native import elfread, inputfiles, resolve
from pylink._native.results import MergedTables, ObjectTables
from pylink.facts.rownumbers import EntityKind
from pylink.tables import entity_name

FOLDER = Path(__file__).parent
RECORDED = [cases.load(path.parent) for path in sorted(FOLDER.glob("*/*/link.json"))]
# The reference has the order of 13.0; docs/format-notes/releases.md says what changed later.
CASES = [case for case in RECORDED if case.nvlink == oracle.NVLINK_RELEASE]
OUTSIDE = ("-g", "-preserve-relocs", "--library", "--variables-used", "-use-host-info")
LINKS = [
    pytest.param(case, expected, id=f"{case.name}-{expected.variant}")
    for case in CASES
    for expected in case.links
    if expected.variant not in TEXT
    and not case.release  # the reference is of 13.0
    and expected.image
    and not expected.code
    and not any(option.startswith(OUTSIDE) for option in expected.link.options)
]


def cubins(case: Case, expected: Expected) -> list[bytes]:
    return [(case.folder / name).read_bytes() for name in expected.link.inputs]


def test_there_are_links_to_predict() -> None:
    assert len(LINKS) > 40


@pytest.mark.parametrize(("case", "expected"), LINKS)
def test_prediction(case: Case, expected: Expected) -> None:
    predicted = predict(
        cubins(case, expected),
        expected.link.arch,
        relocatable="-r" in expected.link.options,
        selected=selection(expected.link.options),
    )
    image = expected.image_bytes(case.folder)
    assert image is not None
    assert difference(predicted, observe(image)) == ""


@pytest.mark.parametrize(("case", "expected"), LINKS)
def test_entities_are_numbered_by_first_mention(case: Case, expected: Expected) -> None:
    """Functions of a file before its other symbols."""
    images = cubins(case, expected)
    sizes = [len(image) for image in images]
    arena, extents, _, _ = inputfiles.read_files([None] * len(images), sizes, [*images])
    files, sections, symbols, faults = elfread.parse(arena, extents)
    assert not faults
    merged = MergedTables(ObjectTables(arena, files, sections, symbols))
    resolve.resolve(merged)
    kinds = merged.entities.column("kind")
    names = [entity_name(merged, i) for i in range(len(kinds))]
    link = read(images, expected.link.arch)
    assert [n for n, k in zip(names, kinds, strict=True) if k == EntityKind.FUNC] == [
        symbol.name for symbol in link.functions
    ]
    assert names == [symbol.current.name for symbol in link.entities]
