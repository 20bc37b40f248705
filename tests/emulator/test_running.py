"""Kernels that use what the emulator models run as C++ says, on each architecture.

Expected values are computed here, in Python.
"""

from __future__ import annotations

import pytest
from helpers import oracle

from emulator.errors import Fault
from emulator.kernels import images
from emulator.launching import ARCHS, Run

pytestmark = oracle.needs_oracle


@pytest.fixture(params=ARCHS)
def arch(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 & 1 else value


def launch(arch: str, kernel: str, words: list[int], *rest: int, **options: object) -> list[int]:
    """What a kernel leaves, which must be the same of both linkers' images."""
    runs = [Run(image, arch, kernel, words, *rest, **options) for image in images(arch)]  # type: ignore[arg-type]
    assert runs[0].words == runs[1].words
    assert runs[0].printed == runs[1].printed
    return [signed(word) for word in runs[1].words]


def test_recursion(arch: str) -> None:
    fib = [0, 1, 1, 2, 3, 5, 8, 13]
    assert launch(arch, "recursion", [0] * 32) == fib * 4


def test_tables_of_functions(arch: str) -> None:
    f = [lambda x: x + 1, lambda x: x * 3, lambda x: x ^ 0x55]
    expected = [f[i % 3](i) * 1000 + f[(i + 2) % 3](i) for i in range(32)]
    assert launch(arch, "pointers", [0] * 32) == expected


def test_jump_tables(arch: str) -> None:
    words = [(i * 7 + 3) % 13 for i in range(32)]

    def run(count: int) -> int:
        r = 7
        for k in range(count):
            case = words[k] & 15
            steps = {
                0: r + 3,
                1: r * 5,
                2: r ^ 0x3C,
                3: r - k,
                4: r << 1 | 1,
                5: ~r,
                6: r + words[0],
                7: int(r / 3),
                8: int(abs(r) % 1000) * (1 if r >= 0 else -1),
            }
            r = signed(steps.get(case, r + 1) & 0xFFFFFFFF)
        return r

    found = launch(arch, "switches", words + [0] * 32)
    assert found[32:] == [run(i) for i in range(32)]


def test_divergence(arch: str) -> None:
    limit = 15

    def collatz(a: int) -> tuple[bool, int]:
        steps = 0
        while a != 1:
            a = a * 3 + 1 if a & 1 else a >> 1
            steps += 1
            if steps > limit:
                break
        return a == 1, steps

    results = [collatz(i + 1) for i in range(32)]
    steps = [count for _, count in results]
    ballot = signed(sum(int(done) << i for i, (done, _) in enumerate(results)))
    odd = {i: steps[i ^ 2] for i in range(1, 32, 2)}
    even = {i: steps[i + 2 if i % 16 + 2 < 16 else i] for i in range(0, 32, 2)}
    found = launch(arch, "divergence", list(range(1, 33)) + [0] * 64, limit)
    assert found[:32] == [ballot] * 32
    assert found[32:64] == [(odd | even)[i] for i in range(32)]
    assert found[64:] == steps


def test_votes_shuffles_and_reductions(arch: str) -> None:
    a = [i * 37 % 101 for i in range(32)]
    everyone = range(32)
    high, low = 0, -1
    for i in range(16):
        high, low = high | a[i], low & a[16 + i]
    expected = [
        [a[3]] * 32,
        [a[i - 2 if i % 8 >= 2 else i] for i in everyone],
        [a[i + 3 if i % 16 + 3 < 16 else i] for i in everyone],
        [a[i ^ 5] for i in everyone],
        [signed(sum(1 << i for i in everyone if a[i] & 1))] * 32,
        [int(any(x > 90 for x in a)) + 2] * 32,
        [signed(sum(1 << j for j in everyone if a[j] % 5 == a[i] % 5)) for i in everyone],
        [-1 + 1] * 32,
        [sum(a)] * 32,
        [max(a) - 50] * 32,
        None,
        [high] * 16 + [low] * 16,
    ]
    found = launch(arch, "warps", a + [0] * 32 * len(expected))
    for index, row in enumerate(expected, 1):
        got = found[32 * index : 32 * index + 32]
        if row is None:
            # Lanes that went the same way may or may not be together.
            assert all(got[i] - (i >= 9) & 1 << i or got[i] for i in everyone)
        else:
            assert got == row, index


def test_barriers_of_a_block(arch: str) -> None:
    words = [(i * 29 + 5) % 64 for i in range(64)]
    other = [words[i ^ 33] for i in range(64)]
    count = sum(x & 1 for x in other)
    expected = [x + 100 * count + 10000 + 20000 for x in other]
    assert launch(arch, "barriers", words, block=(64, 1, 1)) == expected


def test_barriers_in_shared_memory(arch: str) -> None:
    words = list(range(64))
    for k in range(3):
        words = [words[(i + 1) % 64] + k for i in range(64)]
    assert launch(arch, "mbarriers", list(range(64)), block=(64, 1, 1)) == words


def test_asynchronous_copies(arch: str) -> None:
    p = [i * 13 % 97 for i in range(128)]
    expected = [p[4 * (31 - i)] + p[4 * (31 - i) + 3] for i in range(32)]
    expected += [p[4 * i] for i in range(32)]  # and twelve bytes of zeros
    expected += [p[i ^ 1] for i in range(32)]
    assert launch(arch, "copies", p, shared=2048)[:96] == expected


def test_atomics(arch: str) -> None:
    words = [-5, 3, 0, 0, 0, 0, 4, 9, 100, 0, 0, 0, 0, 0, 0, 0]
    found = launch(arch, "atomics", words)
    sums = [sum(i for i in range(32) if i & 3 == k) for k in range(4)]
    sums[1] += 2 * 16
    count = 4
    for _ in range(32):
        count = 0 if count >= 10 else count + 1
    double = 32 * 1.5
    assert found == [
        31,
        -31,
        -1,
        0x41800000,
        32,
        32,
        count,
        77,
        132,
        0,
        0,
        0x40480000,
        *sums,
    ]
    assert double == 48.0  # whose upper half is 0x40480000


def test_printing_and_allocation(arch: str) -> None:
    runs = [Run(image, arch, "output", [0] * 32) for image in images(arch)]
    for run in runs:
        assert run.printed == ["0 zero  0.00 0 ff%\n", "1 one  1.50 -5 ff%\n"]
        assert list(run.words) == list(range(1, 33))


def test_assertions(arch: str) -> None:
    assert launch(arch, "failing", [1] * 32, 5) == [1] * 32
    with pytest.raises(Fault, match="assertion failed"):
        launch(arch, "failing", [1] * 31 + [9], 5)


def test_accesses_outside_of_allocations(arch: str) -> None:
    launch(arch, "outside", [0] * 32, 31)
    for index in (32, -1, 1 << 20):
        with pytest.raises(Fault, match=r"store .* at 0x7f1\w+ "):
            launch(arch, "outside", [0] * 32, index)


def test_local_memory(arch: str) -> None:
    words = [(i * 5 + 1) % 40 for i in range(33)]
    count = 21

    def run(i: int) -> int:
        a = [k * k + i for k in range(40)]
        s = 0
        for k in range(count):
            s = s * 3 + a[(words[i] + k) % 40]
        a[count // 2] = a[count // 2] & 0xFFFF | 7 << 16
        return signed(s + a[count // 2] + words[32] & 0xFFFFFFFF)

    assert launch(arch, "local", words, count)[:32] == [run(i) for i in range(32)]


def test_clusters_of_one(arch: str) -> None:
    for cluster in (False, True):
        found = launch(arch, "clusters", [0] * 64, block=(64, 1, 1), cluster=cluster)
        assert found == [64 - i for i in range(64)]


def test_lanes_that_wait_for_each_other(arch: str) -> None:
    assert launch(arch, "spins", [0, 0], block=(8, 1, 1)) == [0, 16]
