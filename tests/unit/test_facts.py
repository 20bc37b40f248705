"""The tables of facts: that they agree with themselves, and that a new fact is a new row."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from types import ModuleType

import pytest
from helpers.relocs_reference import FIELDS

from pylink.facts import (
    attributes,
    elf,
    header,
    releases,
    relocations,
    sectionheader,
    sectionkinds,
    sectiontable,
    target,
)
from pylink.facts.sectiontable import Kind
from pylink.profile.families import family_name

KINDS = sectiontable.kinds()
NATIVE = Path(__file__).parents[2] / "src" / "_native"
# Lines of the kernels that name a kind of section or a family, only falling: what several lines ask
# for the same reason is a column or a bit of the table.
NAMING_LINES = 80


def test_kinds_are_numbered_in_order() -> None:
    assert [kind.number for kind in KINDS] == list(range(len(KINDS)))


def test_every_name_of_a_kind_is_that_of_its_type_alone() -> None:
    """Two kinds may share a name's beginning, but then type, flags or the end tell them apart."""
    seen: dict[tuple[bytes, int, int], int] = {}
    for kind in KINDS:
        for name, type_ in zip(kind.names, kind.types, strict=False):
            told = (name, type_, kind.flags & kind.mask)
            assert seen.setdefault(told, kind.number) == kind.number
            assert len(name) <= sectionheader.RULE_TEXT_SIZE
            assert min(kind.ranks) < sectiontable.RANK_MERCURY or name.startswith(b".nv.")


def test_twins_are_mercury_and_named_after_their_plain_sections() -> None:
    twins = [(kind, KINDS[kind.twin]) for kind in KINDS if kind.twin != sectionkinds.NULL]
    assert len(twins) == 13
    for plain, twin in twins:
        assert twin.flags & elf.SHF_MERCURY, plain.title
        assert not plain.flags & elf.SHF_MERCURY, plain.title
        assert min(twin.ranks) >= sectiontable.RANK_MERCURY
        assert max(plain.ranks) < sectiontable.RANK_MERCURY
        assert twin.names[0].startswith(twin.merc.encode())


def test_what_belongs_to_functions_names_them() -> None:
    for kind in KINDS:
        if kind.owner != sectionkinds.NULL:
            assert kind.names[0].endswith(b"."), kind.title
            assert kind.owner in (sectionkinds.TEXT, sectionkinds.CAPMERC)


def test_titles() -> None:
    assert family_name(sectionkinds.TEXT) == ".text.*"
    assert family_name(sectionkinds.CONSTANT_FUNC) == ".nv.constant*.*"
    assert family_name(sectionkinds.MERC_DEBUG) == ".nv.merc.debug_*"
    assert (family_name(0), family_name(1), family_name(99)) == ("other", "null", "kind 99")


def test_fields_of_relocations_are_those_of_the_reference() -> None:
    forms = {"WHOLE": "V", "HIGH": "V>>32", "WORDS": "V>>2"}
    forms |= {"BANK14": "bank<<14|V>>2", "BANK16": "bank<<16|V", "BANK17": "bank<<17|V"}
    for number, (formula, first, bits) in FIELDS.items():
        row = relocations.RELOCATIONS[number]
        assert (forms[row.form], row.first, row.bits) == (formula, first, bits), row.name
        assert row.first + row.bits <= 8 * row.size or row.size == 8


def test_names_of_relocations_tell_where_the_field_begins() -> None:
    checked = 0
    for row in relocations.RELOCATIONS:
        first = re.search(r"\D\d+_(\d+)$", row.name)
        if row.bits and first:
            assert row.first == int(first[1]), row.name
            checked += 1
    assert checked > 40


def test_unified_types_have_plain_ones_of_the_same_field() -> None:
    by_name = {row.name: row for row in relocations.RELOCATIONS}
    unified = [row for row in relocations.RELOCATIONS if row.name.startswith("UNIFIED")]
    assert len(unified) == 12
    for row in unified:
        plain = by_name[row.plain]
        assert (plain.form, plain.bits, plain.first) == (row.form, row.bits, row.first)


def test_attributes_that_name_functions() -> None:
    named = {number for number in range(256) if attributes.attribute_facts(number).of_function}
    assert named == attributes.SYMBOL_PAIRS
    assert attributes.attribute_facts(attributes.EXTERNS).symbols
    assert attributes.attribute_facts(0x99).words == 0


def test_an_unchanged_header_is_not_written_again(tmp_path: Path) -> None:
    for name, line in (
        ("sectionkinds.pxd", "K_TEXT = 20"),
        (header.COLUMNS_NAME, '#define SPAN_ROW "out:i offset:Q size:Q"'),
    ):
        header.write_headers(NATIVE, tmp_path)
        path = tmp_path / name
        before = path.stat().st_mtime_ns
        header.write_headers(NATIVE, tmp_path)
        assert path.stat().st_mtime_ns == before
        path.write_text("")
        header.write_headers(NATIVE, tmp_path)
        assert line in path.read_text()


def test_a_kind_of_section_is_a_number_and_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Kind(len(KINDS), ".nv.new.", (0x7000008A,), flags=elf.SHF_INFO_LINK, owner=20)
    monkeypatch.setattr(sectionkinds, "NEW", row.number, raising=False)
    monkeypatch.setattr(sectiontable, "kinds", lambda: (*KINDS, row))
    text = header.header_texts()["sectionkinds.pxd"]
    assert f"K_NEW = {row.number}" in text
    assert '".nv.new."' in text


def test_a_kind_without_a_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Kind(len(KINDS), ".nv.new.", (0x7000008A,))
    monkeypatch.setattr(sectiontable, "kinds", lambda: (*KINDS, row))
    with pytest.raises(ValueError, match="numbered"):
        header.header_texts()


def test_releases_are_in_order_and_13_0_is_the_first_followed() -> None:
    toolkits = [release.toolkit for release in releases.RELEASES]
    assert toolkits == sorted(toolkits)
    assert releases.OLDEST_DEFAULT is releases.BY_NAME["13.0"]
    assert releases.NEWEST.relocations >= len(relocations.RELOCATIONS)


# A list of what is taken of a header, on one line or several.
CIMPORT = re.compile(r"^from \S+ cimport (?:\([^)]*\)|.*)$", re.MULTILINE)


def test_kernels_ask_what_a_kind_is_not_which() -> None:
    naming = [
        f"{path.name}: {line.strip()}"
        for path in sorted(NATIVE.glob("*/*.p[xy][dx]"))
        for line in CIMPORT.sub("", path.read_text()).splitlines()
        if re.search(r"\b(K|FAMILY)_[A-Z]", line.partition("#")[0])
        and "FAMILY_TRAITS" not in line
        and "FAMILY_COUNT" not in line
    ]
    assert 50 < len(naming) <= NAMING_LINES, "\n".join(naming)


@pytest.mark.parametrize(
    ("table", "attribute", "changed"),
    [
        (relocations, "MERCURY_DATA", "relocationtypes.pxd"),
        (releases, "TRAIT_NEW", "traits.pxd"),
        (attributes, "FIRST_ISA_VERSION", "attributetypes.pxd"),
        (elf, "SHT_NEW", "elfnumbers.pxd"),
        (sectiontable, "RANK_NEW", "sectionkinds.pxd"),
    ],
)
def test_a_fact_changes_the_header_of_its_subject_alone(
    table: ModuleType, attribute: str, changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = header.header_texts()
    new = frozenset[int]() if attribute == "MERCURY_DATA" else 99
    monkeypatch.setattr(table, attribute, new, raising=False)
    after = header.header_texts()
    assert [name for name in after if after[name] != before[name]] == [changed]


def test_traits_of_families_and_releases_are_different_bits() -> None:
    families = [value for name, value in vars(target).items() if name.startswith("TRAIT_")]
    own = [value for name, value in vars(releases).items() if name.startswith("TRAIT_")]
    assert len(set(families + own)) == len(families) + len(own)
    assert all(value & (value - 1) == 0 for value in families + own)
    assert len(target.FAMILY_TRAITS) == 3


# Kernels that are built again when a fact of the subject changes: at most, of 50.
BUILT_AGAIN = {
    "sectionkinds": 27,
    "relocationtypes": 7,
    "attributetypes": 9,
    "objectformats": 3,
    "traits": 12,
}


@pytest.mark.parametrize(("subject", "most"), BUILT_AGAIN.items())
def test_a_fact_builds_what_uses_it(subject: str, most: int) -> None:
    headers = [*NATIVE.glob("*/*.pxd"), *NATIVE.parent.glob("pylink/_native/*.pxd")]
    used = {module(path): cimported(path) for path in headers}

    def reaches(names: set[str], seen: set[str]) -> bool:
        seen |= names
        new = set().union(*(used.get(name, set()) for name in names)) - seen
        return subject in seen or bool(new and reaches(new, seen))

    kernels = [path.stem for path in NATIVE.glob("*/*.pyx") if reaches(cimported(path), set())]
    assert 1 < len(kernels) <= most, kernels


def module(header: Path) -> str:
    """The name by which sources cimport a header: `tables.rows`, `pylink._native.tables`."""
    root = NATIVE if header.is_relative_to(NATIVE) else NATIVE.parent
    return ".".join(header.relative_to(root).with_suffix("").parts)


def cimported(path: Path) -> set[str]:
    """The headers that a source of the kernels takes names from."""
    return set(re.findall(r"^ *from ([\w.]+) cimport", path.read_text(), re.MULTILINE))


def test_rules_by_type_are_all_rules_of_that_type_and_the_first_that_fits_counts() -> None:
    """Rules change places only where no name fits both, and not with kinds of any name."""
    text = "\n".join(sectionheader.rules_by_type())
    found = re.findall(r" (FIRST_RULE|RULES)\[\] .*{(.*)}", text)
    first, listed = ([int(number) for number in numbers.split(",")] for _, numbers in found)
    rules = [row.strip("{").split(",") for row in sectionheader.rule_rows(KINDS)]
    assert len(first) == 257
    for low in range(256):
        fitting = [
            number
            for number, (type_, _, _, _, _, _, banked, _) in enumerate(rules)
            if (low - int(type_.strip(" u"))) & 0xFF
            <= (sectionheader.MAX_BANK if int(banked) else 0)
        ]
        of_type = listed[first[low] : first[low + 1]]
        assert sorted(of_type) == fitting
        for earlier, later in itertools.combinations(of_type, 2):
            if earlier > later:
                names = [rules[number][7].strip(' "}') for number in (earlier, later)]
                assert not names[1].startswith(names[0])
                assert rules[later][5].strip() == "1" or not names[0].startswith(names[1])
                assert KINDS[int(rules[earlier][3])].free == sectiontable.FREE_NEVER
