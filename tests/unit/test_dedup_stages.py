"""Each rule of the comparison, by a case that would come out differently without it."""

from __future__ import annotations

import pickle

import pytest

from pylink.dedup import MercuryObject, Verdict, compare

H = (".nv.merc.debug_info", 16, 5 << 32 | 3, 1)
T = (".nv.merc.rela.debug_info", b"entry")


def described(
    primary: list[bytes] | None = None,
    headers: list[tuple[str, int, int, int]] | None = None,
    targets: list[tuple[str, bytes]] | None = None,
) -> MercuryObject:
    return MercuryObject(
        [b"data"] if primary is None else primary,
        [H] if headers is None else headers,
        [T] if targets is None else targets,
    )


@pytest.fixture(params=["xxh3", "none"])
def prefilter(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def place(verdict: Verdict) -> tuple[int, int | None, int | None]:
    return verdict.code, verdict.stage, verdict.index


def test_equal_objects_fold(prefilter: str) -> None:
    assert place(compare(described(), described(), prefilter=prefilter)) == (0, None, None)


def test_verdicts_can_be_pickled(prefilter: str) -> None:
    verdict = compare(described(), described([b"dato"]), prefilter=prefilter)
    again = pickle.loads(pickle.dumps(verdict))
    assert place(again) == place(verdict) == (17, 1, 0)
    assert (again.offset, again.stats) == (verdict.offset, verdict.stats)
    assert again.stats.stage_ns == verdict.stats.stage_ns


def test_empty_objects_fold(prefilter: str) -> None:
    assert compare(MercuryObject(), MercuryObject(), prefilter=prefilter).code == 0


def test_data_that_differs_is_rejected_with_17(prefilter: str) -> None:
    verdict = compare(
        described([b"same", b"data"]), described([b"same", b"dada"]), prefilter=prefilter
    )
    assert place(verdict) == (17, 1, 1)
    assert verdict.offset == 2
    assert "74 61" in verdict.reason
    assert "64 61" in verdict.reason


def test_stage_1_is_positional(prefilter: str) -> None:
    assert place(
        compare(described([b"a", b"b"]), described([b"b", b"a"]), prefilter=prefilter)
    ) == (17, 1, 0)


def test_stage_1_reads_only_what_the_candidate_has(prefilter: str) -> None:
    assert (
        compare(described([b"data", b"more"]), described([b"data"]), prefilter=prefilter).code == 0
    )
    assert compare(described([b"database"]), described([b"data"]), prefilter=prefilter).code == 0


def test_a_longer_candidate_vector_is_17_and_not_read(prefilter: str) -> None:
    verdict = compare(described([b"data"]), described([b"data", b"more"]), prefilter=prefilter)
    assert place(verdict) == (17, 1, 1)
    assert "outside the vector of the reference" in verdict.reason


def test_a_longer_candidate_vector_of_empty_entries_is_17_too(prefilter: str) -> None:
    assert place(compare(described([]), described([b""]), prefilter=prefilter)) == (17, 1, 0)


def test_a_shorter_reference_entry_is_17_and_not_read(prefilter: str) -> None:
    verdict = compare(described([b"dat"]), described([b"data"]), prefilter=prefilter)
    assert place(verdict) == (17, 1, 0)
    assert "outside the entry of the reference" in verdict.reason
    assert verdict.stats.memcmp_calls == 0


def test_the_prefix_is_nine_characters_and_the_strip_eight(prefilter: str) -> None:
    def named(name: str) -> MercuryObject:
        return described(headers=[(name, 16, 0, 1)])

    def code(a: str, b: str) -> int:
        return compare(named(a), named(b), prefilter=prefilter).code

    assert code(".nv.merc.debug_info", ".debug_info") == 0  # the dot stays
    assert code(".debug_info", ".nv.merc.debug_info") == 0
    assert code(".nv.merc.debug_info", "debug_info") == 19
    assert code(".nv.mercX", "X") == 19  # eight characters are no prefix
    assert code(".nv.merc.", ".") == 0
    assert code(".nv.merc", "") == 19
    assert code(".nv.merc..nv.merc.a", ".nv.merc.a") == 19  # one strip on each side, not two


def test_targets_are_named_by_the_same_strip(prefilter: str) -> None:
    twin = described(targets=[(".rela.debug_info", T[1])])
    assert compare(described(), twin, prefilter=prefilter).code == 0


@pytest.mark.parametrize(
    "header",
    [
        (".nv.merc.debug_line", *H[1:]),
        (H[0], 17, *H[2:]),
        (*H[:2], H[2] + 1, H[3]),
        (*H[:2], H[2] + (1 << 32), H[3]),
        (*H[:3], 2),
    ],
    ids=["name", "+0", "sh_link", "sh_info", "addralign"],
)
def test_each_field_of_a_header_counts(header: tuple[str, int, int, int], prefilter: str) -> None:
    verdict = compare(described(), described(headers=[header]), prefilter=prefilter)
    assert place(verdict) == (19, 2, 0)


def test_only_the_low_dword_of_addralign_counts(prefilter: str) -> None:
    assert (
        compare(described(), described(headers=[(*H[:3], 1 | 1 << 32)]), prefilter=prefilter).code
        == 0
    )


def test_header_numbers_must_agree(prefilter: str) -> None:
    other = (".nv.merc.debug_str", 1, 0, 1)
    verdict = compare(described(headers=[H, other]), described(), prefilter=prefilter)
    assert place(verdict) == (19, 2, None)
    assert "1 section headers, the reference 2" in verdict.reason


def test_headers_may_stand_in_another_order(prefilter: str) -> None:
    other = (".nv.merc.debug_str", 1, 0, 1)
    verdict = compare(
        described(headers=[H, other]), described(headers=[other, H]), prefilter=prefilter
    )
    assert verdict.code == 0


def test_multiplicity_of_headers_is_not_checked(prefilter: str) -> None:
    other = (".nv.merc.debug_str", 1, 0, 1)
    twice = described(headers=[H, H])
    assert compare(described(headers=[H, other]), twice, prefilter=prefilter).code == 0
    assert place(compare(twice, described(headers=[H, other]), prefilter=prefilter)) == (19, 2, 1)


def test_multiplicity_of_targets_is_not_checked(prefilter: str) -> None:
    other = (T[0], b"other")
    twice = described(targets=[T, T])
    assert compare(described(targets=[T, other]), twice, prefilter=prefilter).code == 0
    assert place(compare(twice, described(targets=[T, other]), prefilter=prefilter)) == (18, 3, 1)


@pytest.mark.parametrize(
    "target",
    [(".nv.merc.rela.debug_line", T[1]), (T[0], b"entrz"), (T[0], b"entr"), (T[0], b"entry2")],
    ids=["name", "bytes", "shorter", "longer"],
)
def test_each_part_of_a_target_counts(target: tuple[str, bytes], prefilter: str) -> None:
    assert place(compare(described(), described(targets=[target]), prefilter=prefilter)) == (
        18,
        3,
        0,
    )


def test_target_numbers_must_agree(prefilter: str) -> None:
    verdict = compare(described(), described(targets=[]), prefilter=prefilter)
    assert place(verdict) == (18, 3, None)


def test_the_stages_reject_in_order(prefilter: str) -> None:
    wrong = described([b"dada"], [], [])
    assert compare(described(), wrong, prefilter=prefilter).code == 17
    assert compare(described(), described(headers=[], targets=[]), prefilter=prefilter).code == 19
    assert compare(described(), described(targets=[]), prefilter=prefilter).code == 18


def test_the_first_of_equal_targets_is_the_twin(prefilter: str) -> None:
    """Six probes: each candidate meets the first copy, at place 0 or behind the odd one."""
    reference = described(targets=[T, (T[0], b"other"), T])
    candidate = described(targets=[T, T, T])
    verdict = compare(reference, candidate, prefilter=prefilter)
    assert verdict.code == 0
    assert verdict.stats.twin_probes == 1 + 3  # one header and three times the first target


def test_names_may_be_bytes_or_text() -> None:
    text = MercuryObject([], [("é", 1, 2, 3)], [("é", b"")])
    data = MercuryObject([], [("é".encode(), 1, 2, 3)], [("é".encode(), b"")])
    assert compare(text, data).code == 0


def test_payloads_may_be_views_and_later_writes_do_not_show() -> None:
    source = bytearray(b"xdatax")
    item = MercuryObject([memoryview(source)[1:5]])
    source[1] = 0
    assert compare(MercuryObject([memoryview(b"xdatax")[1:5]]), item).code == 0


@pytest.mark.parametrize("value", [-1, 1 << 64])
def test_a_field_that_does_not_fit_is_refused(value: int) -> None:
    with pytest.raises(ValueError, match="unsigned 64-bit"):
        MercuryObject([], [("a", value, 0, 1)])


@pytest.mark.parametrize("option", [{"prefilter": "crc"}, {"identity": "names"}])
def test_unknown_options_are_refused(option: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="is one of"):
        compare(described(), described(), **option)
