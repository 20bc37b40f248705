"""The cost of comparing and folding Mercury sections, as ratios of times of one run.

`python benchmarks/bench_dedup.py` prints the ratios; `pytest benchmarks/bench_dedup.py
--benchmark-enable` sweeps the sizes. Times are the best of several runs.
"""

from __future__ import annotations

import ctypes
import math
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import xxhash
from pytest_benchmark.fixture import BenchmarkFixture

if __name__ == "__main__":
    ROOT = Path(__file__).parents[1]
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from helpers.dedup_reference import Plain, compare_reference

from benchmarks.fastest import fastest
from pylink.dedup import MercuryObject, compare, fold

MEMCMP = ctypes.CDLL(None).memcmp
MEMCMP.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)

LARGE = 256 << 20  # bytes of an object that is compared as a whole
SWEEP = (256, 1024, 4096, 16384, 65536)  # numbers of headers or targets (relocation sections)
LINEAR = 4096  # number of these for which all pairs are compared
BUILD = 2000  # objects that are folded


def header_vectors(count: int) -> tuple[Plain, Plain]:
    """Return two objects with the same section headers in two orders."""
    headers = [(f".nv.merc.text.kernel_{i}", 64 * i, i, 16) for i in range(count)]
    shuffled = random.Random(count).sample(headers, count)
    return Plain(headers=headers), Plain(headers=shuffled)


def target_vectors(count: int) -> tuple[Plain, Plain]:
    """Return two objects with the same relocation sections (targets) in two orders.

    All of them have one name, and each has bytes of its own.
    """
    rng = random.Random(count)
    targets = [(".nv.merc.rela.text.k", rng.randbytes(48)) for _ in range(count)]
    return Plain(targets=targets), Plain(targets=rng.sample(targets, count))


def build(count: int, early: bool = True) -> list[MercuryObject]:
    """Return objects of 20 sections of 4 KiB, half of the objects copies of the other half.

    Different objects differ in their first bytes (`early`), or only in the last section and in the
    targets (relocation sections), which are compared last.
    """

    def item(seed: int) -> MercuryObject:
        """Return the object of a seed; if not `early`, all objects share 19 of its 20 sections."""
        rng = random.Random(seed)
        return MercuryObject(
            [rng.randbytes(4096) if early or i == 19 else bytes([i]) * 4096 for i in range(20)],
            [(f".nv.merc.text.k{i}", 4096, i, 16) for i in range(20)],
            [(f".nv.merc.rela.text.k{i}", rng.randbytes(48)) for i in range(20)],
        )

    items = [item(seed % (count // 2)) for seed in range(count)]
    random.Random(0).shuffle(items)
    return items


def read_once(items: list[MercuryObject]) -> None:
    """Read all bytes once in the cheapest way available: XXH3 of each section."""
    payloads = [data for item in items for data in item.primary]
    list(map(xxhash.xxh3_64_intdigest, payloads))


def large_pair() -> tuple[bytes, bytes]:
    """Return two buffers with the same bytes, which share no memory."""
    data = os.urandom(1 << 20) * (LARGE >> 20)
    return data, bytes(bytearray(data))


def measure_memcmp() -> None:
    """Compare two equal large objects, and print the time as a multiple of one memcmp's."""
    first, second = large_pair()
    reference, candidate = MercuryObject([first]), MercuryObject([second])
    rounds = [
        (
            fastest(lambda: MEMCMP(first, second, LARGE), 3),
            fastest(lambda: compare(reference, candidate), 3),
        )
        for _ in range(5)
    ]
    plain, comparing = (min(column) for column in zip(*rounds, strict=True))
    show(
        "equal objects of 256 MiB",
        f"memcmp {ms(plain)}, compare {ms(comparing)}",
        comparing / plain,
    )


def measure_entries(label: str, vectors: Callable[[int], tuple[Plain, Plain]]) -> None:
    """Measure how the time of a comparison grows with the number of headers or targets.

    `vectors` returns two objects with the same entries. Two ratios are printed, too: plain Python's
    time to that of comparing all pairs (`prefilter="none"`), and the latter to the normal time.
    """
    times = {}
    for count in SWEEP:
        fresh = []
        for _ in range(5):  # new objects each time, so that tables and digests count
            reference, candidate = (item.build() for item in vectors(count))
            fresh.append(fastest(lambda: compare(reference, candidate), 1))  # noqa: B023 -- called at once
        times[count] = min(fresh)
    exponent = math.log(times[SWEEP[-1]] / times[SWEEP[0]]) / math.log(SWEEP[-1] / SWEEP[0])
    sweep = ", ".join(f"{count}: {ms(elapsed)}" for count, elapsed in times.items())
    show(f"{label}, xxh3, exponent", sweep, exponent)
    plain_reference, plain_candidate = vectors(LINEAR)
    reference, candidate = plain_reference.build(), plain_candidate.build()
    linear = fastest(lambda: compare(reference, candidate, prefilter="none"), 3)
    pure = fastest(lambda: compare_reference(plain_reference, plain_candidate), 1)
    show(f"{label}, N=4096, plain Python / none", f"{ms(pure)}, {ms(linear)}", pure / linear)
    hashed = times[LINEAR]
    show(f"{label}, N=4096, none / xxh3", f"{ms(linear)}, {ms(hashed)}", linear / hashed)


def measure_fold(label: str, early: bool) -> None:
    """Measure `fold`, which finds equal objects, beside one read of them and without prefilter."""
    reading, folding = [], []
    for _ in range(3):
        items = build(BUILD, early)
        reading.append(fastest(lambda: read_once(items), 3))  # noqa: B023 -- called at once
        folding.append(fastest(lambda: fold(items), 1))  # noqa: B023 -- called at once
    hashed, read = min(folding), min(reading)
    show(f"fold of {BUILD}, {label}, xxh3 / reading", f"{ms(hashed)}, {ms(read)}", hashed / read)
    linear = fastest(lambda: fold(items, prefilter="none"), 1)
    half_build = build(BUILD // 2, early)
    half = fastest(lambda: fold(half_build, prefilter="none"), 1)
    show(f"fold of {BUILD}, {label}, none / xxh3", f"{ms(linear)}, {ms(hashed)}", linear / hashed)
    show(f"fold, {label}, none, {BUILD} / {BUILD // 2}", f"{ms(linear)}, {ms(half)}", linear / half)


def ms(seconds: float) -> str:
    """Return seconds as a text in milliseconds."""
    return f"{seconds * 1e3:.3f} ms"


def show(label: str, times: str, ratio: float) -> None:
    """Print a ratio after its label, and the times that it comes from."""
    print(f"{label:58} {ratio:9.3f}   ({times})", flush=True)


@pytest.mark.parametrize("prefilter", ["xxh3", "none"])
@pytest.mark.parametrize("count", SWEEP[:3])
@pytest.mark.parametrize("vectors", [header_vectors, target_vectors])
def test_bench_twins(
    benchmark: BenchmarkFixture,
    vectors: Callable[[int], tuple[Plain, Plain]],
    count: int,
    prefilter: str,
) -> None:
    reference, candidate = (item.build() for item in vectors(count))
    benchmark.group = f"{vectors.__name__} n={count}"
    assert benchmark(compare, reference, candidate, prefilter=prefilter).code == 0


@pytest.mark.parametrize("prefilter", ["xxh3", "none"])
@pytest.mark.parametrize("count", [50, 100, 200])
def test_bench_fold(benchmark: BenchmarkFixture, count: int, prefilter: str) -> None:
    items = build(count)
    benchmark.group = f"fold n={count}"
    result = benchmark(fold, items, prefilter=prefilter)
    assert sum(reference is not None for reference in result.reference) == count // 2


def main() -> None:
    measure_memcmp()
    measure_entries("headers", header_vectors)
    measure_entries("tied targets", target_vectors)
    measure_fold("differing early", early=True)
    measure_fold("differing at the end", early=False)


if __name__ == "__main__":
    main()
