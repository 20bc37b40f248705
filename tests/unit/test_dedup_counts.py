"""The counts of work, computed by hand."""

from __future__ import annotations

import pytest

from pylink.dedup import MercuryObject, Stats, compare, fold
from pylink.mercury import folding, index, objects, prefilter

H = [("a", 1, 0, 1), ("b", 1, 0, 1), ("c", 1, 0, 1)]


def counts(stats: Stats) -> dict[str, int]:
    """The counts that are not zero."""
    return {name: value for name, value in stats.counts().items() if value}


@pytest.fixture
def one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "KEY_MASK", 0)


@pytest.fixture
def one_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefilter, "digests_of", lambda payloads: [7] * len(payloads))


def test_stage_1_counts_bytes_up_to_the_first_difference() -> None:
    verdict = compare(MercuryObject([b"same", b"abcdef"]), MercuryObject([b"same", b"abXdef"]))
    assert counts(verdict.stats) == {
        "pairs": 1,
        "memcmp_calls": 2,
        "bytes_compared": 4 + 3,
        "bytes_offered": 4 + 6,
    }


def test_the_difference_is_found_in_any_block() -> None:
    size = 100_000
    for at in (0, 1, 7, 8, 16383, 16384, 16391, size - 1):
        data = bytearray(size)
        data[at] = 1
        verdict = compare(MercuryObject([bytes(size)]), MercuryObject([bytes(data)]))
        assert verdict.offset == at
        assert verdict.stats.bytes_compared == at + 1


def test_a_linear_search_probes_up_to_the_twin() -> None:
    reference, candidate = MercuryObject([], H), MercuryObject([], H[::-1])
    verdict = compare(reference, candidate, prefilter="none")
    assert counts(verdict.stats) == {"pairs": 1, "twin_probes": 3 + 2 + 1}


def test_a_linear_search_without_twin_probes_all() -> None:
    candidate = MercuryObject([], [H[1], H[1], ("d", 1, 0, 1)])
    verdict = compare(MercuryObject([], H), candidate, prefilter="none")
    assert counts(verdict.stats) == {"pairs": 1, "twin_probes": 2 + 2 + 3}


def test_a_search_by_key_probes_once() -> None:
    verdict = compare(MercuryObject([], H), MercuryObject([], H[::-1]))
    assert counts(verdict.stats) == {"pairs": 1, "twin_probes": 3, "prefilter_hits": 3}


def test_a_search_by_key_without_twin_probes_nothing() -> None:
    verdict = compare(MercuryObject([], H), MercuryObject([], [("d", 1, 0, 1)] * 3))
    assert counts(verdict.stats) == {"pairs": 1}


@pytest.mark.usefixtures("one_key")
def test_colliding_keys_are_false_positives() -> None:
    verdict = compare(MercuryObject([], H), MercuryObject([], H[::-1]))
    assert counts(verdict.stats) == {
        "pairs": 1,
        "twin_probes": 3 + 2 + 1,
        "prefilter_hits": 3,
        "false_positives": 2 + 1,
    }


def test_targets_of_one_size_and_different_names_need_no_digest() -> None:
    targets = [("t", b"12"), ("u", b"34")]
    verdict = compare(MercuryObject([], [], targets), MercuryObject([], [], targets[::-1]))
    assert counts(verdict.stats) == {
        "pairs": 1,
        "memcmp_calls": 2,
        "bytes_compared": 4,
        "bytes_offered": 4,
        "twin_probes": 2,
        "prefilter_hits": 2,
    }


def test_only_targets_that_tie_are_hashed_and_only_once() -> None:
    targets = [("t", b"12"), ("t", b"34"), ("t", b"567"), ("u", b"89")]
    reference = MercuryObject([], [], targets)
    verdict = compare(reference, MercuryObject([], [], targets[::-1]))
    assert counts(verdict.stats) == {
        "pairs": 1,
        "memcmp_calls": 4,
        "bytes_compared": 9,
        "bytes_offered": 9,
        "twin_probes": 4,
        "prefilter_hits": 4,
        "digests": 2 + 2,
        "digest_bytes": 4 + 4,
    }
    again = compare(reference, MercuryObject([], [], targets))
    assert (again.stats.digests, again.stats.digest_bytes) == (2, 4)
    assert compare(reference, reference).stats.digests == 0


@pytest.mark.usefixtures("one_digest")
def test_colliding_digests_are_confirmed_by_their_bytes() -> None:
    targets = [("t", b"12"), ("t", b"34")]
    verdict = compare(MercuryObject([], [], targets), MercuryObject([], [], targets))
    assert verdict.code == 0
    assert counts(verdict.stats) == {
        "pairs": 1,
        "memcmp_calls": 1 + 2,
        "bytes_compared": 2 + 1 + 2,
        "bytes_offered": 2 + 2 + 2,
        "twin_probes": 3,
        "prefilter_hits": 2,
        "false_positives": 1,
        "digests": 4,
        "digest_bytes": 8,
    }


def build() -> list[MercuryObject]:
    """Three distinct objects of one shape, then a copy of the second."""
    return [MercuryObject([b"head", data]) for data in (b"one", b"two", b"six", b"two")]


def test_a_fold_without_prefilter_tries_each_pair() -> None:
    result = fold(build(), prefilter="none")
    assert result.reference == [None, None, None, 1]
    assert result.payload_bytes == 7
    # Pairs (0,1) (0,2) (1,2) (0,3) (1,3): "head" each time, then one byte, or all three at the end.
    assert counts(result.stats) == {
        "pairs": 5,
        "memcmp_calls": 10,
        "bytes_compared": 5 * 4 + 4 * 1 + 3,
        "bytes_offered": 5 * 7,
    }


def test_a_fold_with_prefilter_tries_what_could_fold() -> None:
    result = fold(build())
    assert result.reference == [None, None, None, 1]
    # (0,1) differs in entry 1, which is hashed for both; object 2 meets no object there and is
    # compared with the last one for its verdict; object 3 meets object 1.
    assert counts(result.stats) == {
        "pairs": 3,
        "memcmp_calls": 6,
        "bytes_compared": 3 * 4 + 1 + 1 + 3,
        "bytes_offered": 3 * 7,
        "digests": 4,
        "digest_bytes": 4 * 3,
    }


def test_objects_of_different_sizes_are_never_hashed() -> None:
    items = [MercuryObject([bytes(size)], [("a", size, 0, 1)]) for size in range(8)]
    result = fold(items)
    assert result.reference == [None] * 8
    assert result.stats.digests == 0
    assert result.stats.pairs == 7  # each with the last one, for its verdict


def test_a_verdict_of_a_fold_counts_its_own_pair() -> None:
    result = fold(build(), prefilter="none")
    last = result.verdicts[3]
    assert last is not None
    assert last.code == 0
    assert counts(last.stats) == {
        "pairs": 1,
        "memcmp_calls": 2,
        "bytes_compared": 7,
        "bytes_offered": 7,
    }


def test_time_is_counted_by_stage() -> None:
    item = MercuryObject([bytes(1 << 20)], H, [("t", b"x")])
    other = MercuryObject([bytes((1 << 20) - 1) + b"x"], H, [("t", b"x")])
    assert compare(item, item).stats.stage_ns[0] > 0
    rejected = compare(item, other).stats.stage_ns
    assert rejected[0] > 0
    assert rejected[1:] == (0, 0)


def repeating(number: int) -> MercuryObject:
    """An object that repeats a header, and equals no other."""
    return MercuryObject([number.to_bytes(8, "little")], [H[0], H[0], H[1]])


def test_small_objects_that_repeat_a_key_are_not_compared_from_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    build = [repeating(number) for number in (*range(40), 7, 39)]
    expected = fold(build, prefilter="none")
    calls = []
    monkeypatch.setattr(folding, "decide", lambda *arguments: calls.append(arguments))
    result = fold(build)
    assert calls == []
    assert result.reference == expected.reference == [*[None] * 40, 7, 39]
    assert result.stats.pairs == expected.stats.pairs
    verdicts = zip(result.verdicts, expected.verdicts, strict=True)
    assert all(
        (a and (a.reason_row, a.index)) == (b and (b.reason_row, b.index)) for a, b in verdicts
    )
    monkeypatch.undo()
    monkeypatch.setattr(index, "MOST_WALKED_ROWS", 0)
    assert fold(build).reference == expected.reference
