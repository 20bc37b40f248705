"""Equal bytes fold only where they mean the same: symbols of different files."""

from __future__ import annotations

import random

import pytest
from helpers.dedup_cubin import (
    CODE,
    FRAME,
    FRAME_RELA,
    FUNC,
    GLOBAL,
    LOCAL,
    OBJECT,
    SECTION,
    TEMPLATE,
    WEAK,
    Cubin,
    Symbol,
    rela,
)

from pylink.dedup import MercuryObject, Verdict, compare, fold


def read(cubin: Cubin, name: str = "m.cubin") -> MercuryObject:
    return MercuryObject.from_cubin(cubin.image(), name)


def check(reference: Cubin, candidate: Cubin) -> Verdict:
    """The verdict, after the plain rule has accepted the pair."""
    ref, cand = read(reference, "a.cubin"), read(candidate, "b.cubin")
    assert compare(ref, cand, identity="bytes").code == 0
    verdict = compare(ref, cand)
    assert compare(ref, cand, prefilter="none").reason_row == verdict.reason_row
    expected = 0 if verdict.code == 0 else None
    for prefilter in ("xxh3", "none"):
        assert fold([ref, cand], prefilter=prefilter).reference == [None, expected]
    return verdict


def test_a_template_instance_folds() -> None:
    assert check(TEMPLATE, TEMPLATE).code == 0


def test_a_local_function_is_another_one_in_each_file() -> None:
    local = TEMPLATE.with_symbol(1, Symbol("k", LOCAL, FUNC, CODE))
    verdict = check(local, local)
    assert (verdict.code, verdict.stage) == (18, 3)
    assert "define different functions" in verdict.reason


def test_a_local_function_is_protected_even_if_nothing_refers_to_it() -> None:
    local = TEMPLATE.with_symbol(1, Symbol("k", LOCAL, FUNC, CODE))
    local = local.with_section(FRAME_RELA, data=rela(2, 3))
    assert check(local, local).code == 18


def test_a_local_variable_is_another_one_in_each_file() -> None:
    local = TEMPLATE.with_symbol(3, Symbol("counter", LOCAL, OBJECT, ".nv.global"))
    verdict = check(local, local)
    assert (verdict.code, verdict.stage, verdict.index, verdict.offset) == (18, 3, 0, 2)
    assert "entry 2 of relocation target .nv.merc.rela.debug_frame" in verdict.reason
    assert "counter" in verdict.reason


def test_equal_numbers_may_be_different_global_symbols() -> None:
    other = TEMPLATE.with_symbol(3, Symbol("malloc", GLOBAL, FUNC))
    verdict = check(TEMPLATE, other)
    assert (verdict.code, verdict.symbol) == (18, 3)
    assert "vprintf" in verdict.reason
    assert "malloc" in verdict.reason


def test_a_global_name_of_another_type_is_another_symbol() -> None:
    assert check(TEMPLATE, TEMPLATE.with_symbol(3, Symbol("vprintf", GLOBAL, OBJECT))).code == 18


def test_a_reference_to_a_section_that_stays_rejects() -> None:
    """The start of .nv.global is elsewhere for each file."""
    shared = TEMPLATE.with_symbol(3, Symbol(".nv.global", LOCAL, SECTION, ".nv.global"))
    assert check(shared, shared).code == 18


def test_a_reference_to_a_section_that_folds_follows_it() -> None:
    line = Symbol(".debug_line", LOCAL, SECTION, ".nv.merc.debug_line")
    folded = TEMPLATE.with_symbol(3, line)
    assert check(folded, folded).code == 0


def test_equal_numbers_may_be_the_starts_of_different_sections() -> None:
    line = Symbol(".debug_line", LOCAL, SECTION, ".nv.merc.debug_line")
    assert check(TEMPLATE, TEMPLATE.with_symbol(2, line)).code == 18


def test_symbols_that_nothing_uses_do_not_matter() -> None:
    ours = TEMPLATE.with_section(FRAME_RELA, data=rela(1, 2))
    assert check(ours, ours.with_symbol(3, Symbol("other", LOCAL, OBJECT, ".nv.global"))).code == 0


def test_a_number_past_the_references_symbols_rejects() -> None:
    short = Cubin(TEMPLATE.sections, TEMPLATE.symbols[:2]).with_section(FRAME_RELA, data=rela(1, 2))
    longer = TEMPLATE.with_symbol(3, Symbol("k2", GLOBAL, FUNC, CODE))
    longer = longer.with_section(FRAME_RELA, data=rela(1, 2))
    verdict = check(short, longer)
    assert verdict.code == 18
    assert "does not exist" in verdict.reason


def test_a_strong_copy_does_not_fold_into_a_weak_one() -> None:
    strong = TEMPLATE.with_symbol(1, Symbol("k", GLOBAL, FUNC, CODE))
    verdict = check(TEMPLATE, strong)
    assert verdict.code == 18
    assert "whose copy wins" in verdict.reason
    assert check(strong, TEMPLATE).code == 0


def test_other_attributes_reject() -> None:
    other = TEMPLATE.with_section(".nv.merc.nv.info", data=b"inf0")
    verdict = check(TEMPLATE, other)
    assert verdict.code == 18
    assert "attribute records" in verdict.reason


def test_a_section_without_bytes_is_no_copy_of_one_with_bytes() -> None:
    verdict = check(TEMPLATE, TEMPLATE.with_section(".nv.merc.debug_line", type=8))
    assert (verdict.code, verdict.stage) == (19, 2)
    assert "sh_type" in verdict.reason


def test_relocations_of_another_section_reject() -> None:
    other = TEMPLATE.with_section(FRAME_RELA, info=".nv.merc.debug_line")
    verdict = check(TEMPLATE, other)
    assert (verdict.code, verdict.index) == (18, 0)
    assert "applies to another section" in verdict.reason


def test_twins_in_another_order_reject() -> None:
    """Sizes and first bytes agree, so the plain rule holds a section against the wrong one."""
    ours = TEMPLATE.with_section(FRAME, data=b"line", info=0)
    sections = list(ours.sections)
    sections[1], sections[5] = sections[5], sections[1]
    verdict = check(ours, Cubin(sections, ours.symbols))
    assert (verdict.code, verdict.stage, verdict.index) == (19, 2, 1)
    assert "at another place" in verdict.reason


def test_vectors_without_symbols_are_compared_by_bytes() -> None:
    item = read(TEMPLATE.with_symbol(1, Symbol("k", LOCAL, FUNC, CODE)))
    plain = MercuryObject(item.primary, item.headers, item.targets)
    assert compare(item, plain).code == 0
    assert compare(plain, item).code == 0
    assert fold([item, plain]).reference == [None, 0]


def test_a_function_that_only_one_file_defines_rejects() -> None:
    """Even where the other has a symbol of no function at its number."""
    local = TEMPLATE.with_section(FRAME_RELA, data=rela(2))
    local = local.with_symbol(1, Symbol("k", LOCAL, FUNC, CODE))
    other = local.with_symbol(1, Symbol("k", LOCAL, OBJECT, CODE))
    assert check(local, other).code == 18
    assert check(other, local).code == 18


COMPARED = (CODE, FRAME, ".nv.merc.debug_line")


def meaning(cubin: Cubin, number: int) -> tuple[object, ...] | None:
    """What a symbol number stands for in every file, or None."""
    if number == 0:
        return ("null",)
    symbol = cubin.symbols[number - 1]
    if symbol.bind in (GLOBAL, WEAK):
        return (symbol.type, symbol.name) if symbol.name else None
    if symbol.type == SECTION and symbol.section in COMPARED:
        return (symbol.section,)
    return None


def identity_reference(reference: Cubin, candidate: Cubin) -> bool:
    """Whether symbols let `candidate` fold, for the same sections with the same relocations."""
    for i, (theirs, ours) in enumerate(zip(reference.symbols, candidate.symbols, strict=True), 1):
        defined = [symbol.type == FUNC and symbol.section != "" for symbol in (theirs, ours)]
        same = meaning(candidate, i) is not None and (
            meaning(reference, i) == meaning(candidate, i)
        )
        loses = theirs.bind == WEAK and ours.bind != WEAK
        used = any(
            int.from_bytes(section.data[at : at + 4], "little") == i
            for section in candidate.sections
            if section.name == FRAME_RELA
            for at in range(12, len(section.data), 24)
        )
        if any(defined) and (not all(defined) or not same or loses):
            return False
        if used and not same:
            return False
    return True


def random_symbols(rng: random.Random, cubin: Cubin) -> Cubin:
    for number in range(1, 4):
        if rng.randrange(3) == 0:
            symbol = Symbol(
                rng.choice(("k", "v", "")),
                rng.choice((LOCAL, GLOBAL, WEAK)),
                rng.choice((OBJECT, FUNC, SECTION)),
                rng.choice(("", ".nv.global", *COMPARED)),
            )
            cubin = cubin.with_symbol(number, symbol)
    return cubin


def test_random_symbols_agree_with_reference() -> None:
    rng = random.Random(2)
    outcomes = set()
    for _ in range(600):
        used = rela(*rng.choices(range(4), k=rng.randrange(4)))
        ours = random_symbols(rng, TEMPLATE.with_section(FRAME_RELA, data=used))
        theirs = ours if rng.randrange(2) else random_symbols(rng, ours)
        expected = identity_reference(ours, theirs)
        assert (check(ours, theirs).code == 0) == expected
        outcomes.add(expected)
    assert outcomes == {True, False}


@pytest.mark.parametrize("prefilter", ["xxh3", "none"])
def test_a_build_of_files_with_local_functions_stays_whole(prefilter: str) -> None:
    local = TEMPLATE.with_symbol(1, Symbol("k", LOCAL, FUNC, CODE))
    items = [read(cubin) for cubin in (local, TEMPLATE, local, TEMPLATE)]
    result = fold(items, prefilter=prefilter)
    assert result.reference == [None, None, None, 1]
    assert [verdict and verdict.code for verdict in result.verdicts] == [None, 18, 18, 0]
