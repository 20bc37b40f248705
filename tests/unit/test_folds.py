"""Which inputs of a link could fold, and what an accepted fold means for its tables."""

from __future__ import annotations

from struct import pack
from typing import NamedTuple

import pytest
from helpers.tables import merged, objects

from pylink._native.elfread import find_ties
from pylink._native.folds import find_winning_symbol, pair_sections
from pylink._native.results import ObjectTables
from pylink.facts import sectionkinds
from pylink.facts.rownumbers import Resolution

FUNCTION, OBJECT = 2, 1


class Row(NamedTuple):
    name: str
    size: int
    kind: int = sectionkinds.MERC_DEBUG


FRAME = Row(".nv.merc.debug_frame", 64)
STRINGS = Row(".nv.merc.debug_str", 8)
CAPSULE = Row(".nv.capmerc.text.f1", 16, sectionkinds.CAPMERC)
RELOCATIONS = Row(".nv.merc.rela.debug_frame", 24, sectionkinds.MERC_RELA)
UNIT = (CAPSULE, FRAME, STRINGS, RELOCATIONS)


def tables(*files: tuple[Row, ...]) -> ObjectTables:
    """Files with these sections."""
    arena = b""
    rows: list[dict[str, int]] = []
    sections: list[dict[str, int]] = []
    for number, file in enumerate(files):
        rows.append({"first_section": len(sections), "section_count": len(file)})
        for name, size, kind in file:
            text = name.encode()
            place = {"name": len(arena), "name_size": len(text), "file": number}
            sections.append({**place, "size": size, "type": 1, "align": 1, "kind": kind})
            arena += text + b"\0"
    return objects(arena, files=rows, sections=sections)


def test_files_that_agree_in_sizes_and_names_tie() -> None:
    assert find_ties(tables(UNIT, UNIT[::-1], UNIT, (FRAME,), UNIT)) == [0, 2, 4]
    assert find_ties(tables(UNIT[::-1], UNIT, UNIT[::-1], UNIT)) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "other",
    [
        (CAPSULE._replace(size=17), FRAME, STRINGS, RELOCATIONS),
        (CAPSULE._replace(name=".nv.capmerc.text.f2"), FRAME, STRINGS, RELOCATIONS),
        (CAPSULE, FRAME._replace(size=65), STRINGS, RELOCATIONS),
        (CAPSULE, FRAME, STRINGS, RELOCATIONS._replace(size=48)),
        (CAPSULE, FRAME, STRINGS),
    ],
    ids=["capsule size", "capsule name", "debug size", "relocations", "count"],
)
def test_files_that_differ_do_not_tie(other: tuple[Row, ...]) -> None:
    assert find_ties(tables(UNIT, other)) == []


def test_other_sections_do_not_count() -> None:
    text = Row(".text.f1", 128, sectionkinds.TEXT)
    assert find_ties(tables(UNIT, (text, *UNIT))) == [0, 1]
    assert find_ties(tables((text,), (text,))) == []
    assert find_ties(tables((CAPSULE,), (CAPSULE,))) == []
    assert find_ties(tables()) == []


def test_each_section_of_a_pair_gets_its_twin() -> None:
    rows = tables(UNIT, (Row(".text.f1", 128, sectionkinds.TEXT), *UNIT), UNIT)
    assert list(pair_sections(rows, pack("<2i", 1, 0))) == [*[-1] * 4, -1, -1, 1, -1, -1, *[-1] * 4]
    both = pair_sections(rows, pack("<4i", 1, 0, 2, 0))
    assert list(both) == [*[-1] * 4, -1, -1, 1, -1, -1, -1, 1, -1, -1]


@pytest.mark.parametrize("suffix", ["abbrev", "loc", "pubnames", "pubtypes", "str"])
def test_sections_with_plain_bytes_stay(suffix: str) -> None:
    unit = (Row(f".nv.merc.debug_{suffix}", 8), Row(".nv.merc.nv_debug_ptx_txt.7", 9))
    assert list(pair_sections(tables(unit, unit), pack("<2i", 1, 0))) == [-1, -1, -1, -1]


def test_pairs_that_do_not_correspond_are_refused() -> None:
    for other in ((FRAME,), (STRINGS, FRAME), (FRAME._replace(size=65), STRINGS)):
        with pytest.raises(ValueError, match="do not correspond"):
            pair_sections(tables(other, UNIT), pack("<2i", 1, 0))
    for pair in ((0, 2), (-1, 0)):
        with pytest.raises(IndexError):
            pair_sections(tables(UNIT, UNIT), pack("<2i", *pair))


def stronger(theirs: int, ours: int, kind: int = FUNCTION) -> int:
    files = [{"first_symbol": first, "symbol_count": 2} for first in (0, 2)]
    null, symbol = {"section": -1}, {"section": 0, "shndx": 1, "info": 2 << 4 | kind}
    inputs = objects(files=files, symbols=[null, symbol, null, symbol])
    return find_winning_symbol(merged(inputs, symbol_resolution=bytes((0, theirs, 0, ours))), 0, 1)


def test_a_lost_copy_does_not_stand_for_one_that_counts() -> None:
    assert stronger(Resolution.LOST, Resolution.WON) == 3
    assert stronger(Resolution.LOST, Resolution.REPLACED) == 3
    assert stronger(Resolution.LOST_EARLY, Resolution.WON) == 3
    assert stronger(Resolution.LOST, Resolution.LOST_EARLY) == -1
    assert stronger(Resolution.LOST, Resolution.LOST) == -1
    assert stronger(Resolution.WON, Resolution.LOST) == -1
    assert stronger(Resolution.REPLACED, Resolution.WON) == -1
    assert stronger(Resolution.LOST, Resolution.WON, OBJECT) == -1
