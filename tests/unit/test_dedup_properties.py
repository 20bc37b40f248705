"""The kernels against the plain reference on random vectors with planted near misses."""

from __future__ import annotations

import random

import pytest
from helpers.dedup_reference import (
    Plain,
    compare_reference,
    fold_reference,
    near_miss,
    random_plain,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from pylink.dedup import MercuryObject, Verdict, compare, fold
from pylink.mercury import objects, prefilter

PAYLOADS = st.binary(max_size=20) | st.sampled_from([b"", b"a", b"b" * 8, b"b" * 9])
NAMES = st.sampled_from([".nv.merc.a", ".a", ".nv.merc.", ".nv.merc", "a"]) | st.text(max_size=3)
SMALL = st.integers(0, 2) | st.integers(0, 2**64 - 1)
PLAINS = st.builds(
    Plain,
    st.lists(PAYLOADS, max_size=4),
    st.lists(st.tuples(NAMES, SMALL, SMALL, st.integers(0, 2**32 - 1)), max_size=4),
    st.lists(st.tuples(NAMES, PAYLOADS), max_size=4),
)


def decision(verdict: Verdict | None) -> tuple[int, int | None, int | None] | None:
    return None if verdict is None else (verdict.code, verdict.stage, verdict.index)


def both(reference: Plain, candidate: Plain) -> None:
    expected = compare_reference(reference, candidate)
    ref, cand = reference.build(), candidate.build()
    for name in ("xxh3", "none"):
        verdict = compare(ref, cand, prefilter=name)
        assert decision(verdict) == expected
        assert verdict.reason


@pytest.fixture
def colliding(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Lookup keys and digests of one bit or none."""
    bits = request.param
    monkeypatch.setattr(objects, "KEY_MASK", bits)
    monkeypatch.setattr(
        prefilter, "digests_of", lambda payloads: [sum(data) & bits for data in payloads]
    )


@given(PLAINS, PLAINS)
def test_any_two_objects(reference: Plain, candidate: Plain) -> None:
    both(reference, candidate)


@given(PLAINS, st.integers())
def test_any_object_and_its_near_miss(item: Plain, seed: int) -> None:
    rng = random.Random(seed)
    both(item, item)
    both(item, near_miss(rng, item))
    both(near_miss(rng, item), item)


@pytest.mark.parametrize("seed", range(8))
def test_random_objects_in_bulk(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(1500):
        item = random_plain(rng)
        both(item, near_miss(rng, near_miss(rng, item)))
        both(item, near_miss(rng, item))


@pytest.mark.parametrize("colliding", [0, 1, 1 << 32, 1 << 32 | 1], indirect=True)
@pytest.mark.usefixtures("colliding")
def test_colliding_hashes_change_no_verdict() -> None:
    rng = random.Random(11)
    for _ in range(1500):
        item = random_plain(rng)
        both(item, near_miss(rng, item))
        both(item, item)


def would_drop(reference: Plain, candidate: Plain) -> bool:
    """The three stages read from the rule alone, as whether one of two objects may be dropped."""

    def bare(name: str) -> str:
        return name[len(".nv.merc") :] if name.startswith(".nv.merc.") else name

    def heads(item: Plain) -> set[tuple[str, int, int, int]]:
        return {(bare(name), q0, q8, align & 0xFFFFFFFF) for name, q0, q8, align in item.headers}

    def targets(item: Plain) -> set[tuple[str, bytes]]:
        return {(bare(name), data) for name, data in item.targets}

    places = range(len(candidate.primary))
    return (
        len(candidate.primary) <= len(reference.primary)
        and all(reference.primary[at].startswith(candidate.primary[at]) for at in places)
        and len(candidate.headers) == len(reference.headers)
        and heads(candidate) <= heads(reference)
        and len(candidate.targets) == len(reference.targets)
        and targets(candidate) <= targets(reference)
    )


def test_fold_differs_from_the_three_stages_for_objects_without_entries_alone() -> None:
    rng = random.Random(10)
    dropped = differing = 0
    for _ in range(20_000):
        first = random_plain(rng, rng.randrange(1, 5))
        second = near_miss(rng, first) if rng.randrange(2) else first
        if rng.randrange(16) == 0:
            second = Plain([], [], [])
        expected = would_drop(first, second)
        # `compare` is the three stages, whatever the objects have.
        pair = [first.build(), second.build()]
        assert (compare(*pair).code == 0) == expected
        (_, found) = fold(pair).reference
        is_empty = not (second.primary or second.headers or second.targets)
        assert (found == 0) == (expected and not is_empty)
        dropped += found == 0
        differing += (found == 0) != expected
    assert dropped > 2000
    assert differing > 100


def check_fold(plain: list[Plain]) -> None:
    expected = fold_reference(plain)
    for name in ("xxh3", "none"):
        result = fold([item.build() for item in plain], prefilter=name)
        assert result.reference == expected[0]
        assert [decision(verdict) for verdict in result.verdicts] == expected[1]


def random_build(rng: random.Random) -> list[Plain]:
    seeds = [random_plain(rng, 4) for _ in range(3)]
    build = [rng.choice(seeds) for _ in range(12)]
    return [near_miss(rng, item) if rng.randrange(2) else item for item in build]


@pytest.mark.parametrize("seed", range(4))
def test_random_builds(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(150):
        check_fold(random_build(rng))


@pytest.mark.parametrize("colliding", [0, 1, 1 << 32, 1 << 32 | 1], indirect=True)
@pytest.mark.usefixtures("colliding")
def test_random_builds_with_colliding_hashes() -> None:
    rng = random.Random(5)
    for _ in range(200):
        check_fold(random_build(rng))


@pytest.mark.parametrize("colliding", [0, 1, 1 << 32, 1 << 32 | 1], indirect=True)
@pytest.mark.usefixtures("colliding")
def test_rows_in_any_order_with_colliding_hashes() -> None:
    """What repeats and what ties does not depend on which row comes first."""
    rng = random.Random(6)
    for _ in range(300):
        item = random_plain(rng)
        shuffled = [
            Plain(item.primary, rng.sample(item.headers, n), rng.sample(item.targets, m))
            for n, m in [(len(item.headers), len(item.targets))] * 4
        ]
        check_fold(shuffled)


@given(st.lists(PLAINS, max_size=8), st.integers())
@settings(max_examples=60)
def test_any_build(plain: list[Plain], seed: int) -> None:
    rng = random.Random(seed)
    check_fold([*plain, *(near_miss(rng, item) for item in plain), *plain])


def test_a_build_is_folded_alike_twice() -> None:
    """Digests that a first run left behind change nothing."""
    rng = random.Random(3)
    items = [item.build() for item in random_build(rng)]
    first, second = fold(items), fold(items)
    assert first.reference == second.reference
    assert (
        first.payload_bytes
        == second.payload_bytes
        == sum(items[row].size for row, found in enumerate(first.reference) if found is not None)
    )


def test_an_object_may_be_compared_with_itself() -> None:
    item = MercuryObject([b"a"], [("n", 1, 2, 3)], [("t", b"x"), ("t", b"y")])
    assert compare(item, item).code == 0
