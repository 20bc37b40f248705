"""Code for a chip that a later one of its family runs, too: sm_100 for sm_103, 120 for 121.

sm_103 has no fixed time for FP64 and IMMA instructions. ptxas up to 13.2 schedules these for sm_100
without scoreboards, so a link for sm_103 has to give them some.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from typing import Any, cast

import pytest
from helpers import older, oracle, ptx_forms, schedules
from helpers.compare import compare

import pylink
from pylink.facts.target import ARCHITECTURES, FAMILY_C, Target

SOURCE = """
#include <mma.h>
using namespace nvcuda;
__device__ __noinline__ double divided(double a, double b) { return a / b + sqrt(b); }
__global__ void product(double *o) { o[0] = o[1] * o[2]; }
__global__ void chain(double *o, int n)
{
    double s = o[0];
    for (int i = 0; i < n; i++) s = fma(s, o[i], o[i + 1]);
    if (s > o[3]) o[n] = s + o[9];
}
__global__ void several(double *o)
{
    double a = o[0] * o[1], b = o[1] * o[2], c = o[2] * o[3];
    __threadfence();
    o[4] = a + b;
    o[5] = divided(a, c);
    o[6] = min(o[6], c);
}
__global__ void powers(double *o, double e) { o[threadIdx.x] = pow(o[threadIdx.x], e); }
__global__ void tensors(signed char *a, signed char *b, int *c)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> rows;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> columns;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> sum;
    wmma::load_matrix_sync(rows, a, 16);
    wmma::load_matrix_sync(columns, b, 16);
    wmma::fill_fragment(sum, 0);
    for (int i = 0; i < 4; i++) wmma::mma_sync(sum, rows, columns, sum);
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}
"""
INTEGERS = "__global__ void integers(int *p) { p[0] = p[1] + p[2]; }"
# A comparison with a constant is the only FP64 instruction: .nv.compat says nothing of it.
COMPARES = "__global__ void compares(double *p, int *q) { q[0] = p[0] < 1.5; }"
KIND = "untimed-code"


def unguarded_releases() -> list[str]:
    """Those whose ptxas relies on fixed times, and whose linker is at hand."""
    found = [oracle.DEFAULT, *oracle.others(), *oracle.by_library()]
    return [release for release in found if float(release) < 13.3]


def linked(
    cubin: bytes, release: str, words: tuple[str, ...] = (), *, arch: str = "sm_103"
) -> pylink.LinkResult:
    return pylink.link(
        [("m.cubin", cubin)],
        arch=arch,
        nvlink_version=cast("Any", release),
        merc_dedup="off",
        debug="-g" in words,
        relocatable_link="-r" in words,
    )


def asserts_guarded(image: bytes) -> int:
    """How many of the instructions there are; each has a scoreboard that the next waits for.

    Instructions of fences that have no registers need not wait in code that is not optimized.
    """
    count = 0
    for instructions in schedules.code(image).values():
        words = [word for word in instructions if not schedules.is_idle(word)]
        for word, after in itertools.pairwise(words):
            if schedules.operation(word) in schedules.UNTIMED:
                count += 1
                assert schedules.written_scoreboard(word) != schedules.NO_SCOREBOARD
                assert schedules.waits(after, schedules.written_scoreboard(word))
                assert schedules.stall(word) >= 2
    return count


def unguarded_links() -> list[tuple[str, tuple[str, ...]]]:
    """Each of these and what it links with; nvJitLink 12.9 makes no relocatable files."""
    return [
        (release, words)
        for release in unguarded_releases()
        for words in ((), ("-g",), ("-r",))
        if words != ("-r",) or release not in oracle.BY_LIBRARY
    ]


@pytest.mark.parametrize("flag", ["-G", "-O0"])
@pytest.mark.parametrize(("release", "words"), unguarded_links())
@oracle.needs_oracle
def test_code_that_is_not_optimized_is_nvlinks(
    release: str, flag: str, words: tuple[str, ...]
) -> None:
    """To the last bit, those of scoreboards included, and without a word."""
    with oracle.release(release):
        cubin = oracle.compile(SOURCE, "100", [flag])
        theirs = oracle.link([cubin], "103", words)
    assert theirs.image is not None, theirs
    ours = linked(cubin, release, words)
    assert compare(ours.image, theirs.image) == []
    assert schedules.code(ours.image) == schedules.code(theirs.image)
    assert ours.diagnostics == ()
    assert asserts_guarded(ours.image) > 50


@pytest.mark.parametrize("words", [(), ("-r",)], ids=" ".join)
@pytest.mark.parametrize("flag", ["-G", "-O0"])
@pytest.mark.parametrize("release", oracle.others())
@oracle.needs_oracle
def test_older_code_that_is_not_optimized_is_that_of_a_later_nvlink(
    release: str, flag: str, words: tuple[str, ...]
) -> None:
    """Whatever else the later release changes in it."""
    cubin = oracle.compile(SOURCE, "100", [flag])
    with oracle.release(release):
        theirs = oracle.link([cubin], "103", words)
    assert theirs.image is not None, theirs
    ours = linked(cubin, release, words)
    assert schedules.code(ours.image) == schedules.code(theirs.image)
    assert [found for found in ours.diagnostics if found.kind == KIND] == []


@pytest.mark.parametrize("words", [(), ("-r",)], ids=" ".join)
@pytest.mark.parametrize("release", unguarded_releases())
@oracle.needs_oracle
def test_scheduled_code_waits_and_stays_where_it_is(release: str, words: tuple[str, ...]) -> None:
    with oracle.release(release):
        cubin = oracle.compile(SOURCE, "100")
    ours = linked(cubin, release, words)
    count = asserts_guarded(ours.image)
    assert count > 50
    same = linked(cubin, release, words, arch="sm_100")
    for name, before in schedules.code(same.image).items():
        guarded = schedules.code(ours.image)[name]
        assert [word & ~schedules.SCHEDULE for word in guarded] == [
            word & ~schedules.SCHEDULE for word in before
        ], name
    (warning,) = ours.diagnostics
    assert warning.kind == KIND
    assert f"{count} of its FP64 and IMMA instructions" in warning.message
    assert "compile it for sm_103" in warning.message


@pytest.mark.parametrize("release", unguarded_releases())
@oracle.needs_oracle
def test_a_file_that_says_it_needs_nothing_is_looked_at_all_the_same(release: str) -> None:
    with oracle.release(release):
        cubin = oracle.compile(COMPARES, "100")
        theirs = oracle.link([cubin], "103")
    assert theirs.image is not None
    assert asserts_guarded(theirs.image) == 1  # nvlink finds it, too
    ours = linked(cubin, release)
    assert asserts_guarded(ours.image) == 1
    assert [found.kind for found in ours.diagnostics] == [KIND]


@oracle.needs_oracle
def test_there_is_one_warning_for_each_file_that_has_such_code() -> None:
    cubins = [oracle.compile(source, "100") for source in (COMPARES, INTEGERS, SOURCE)]
    cubins.append(oracle.compile(COMPARES.replace("compares", "own"), "103"))
    inputs = [(f"{number}.cubin", cubin) for number, cubin in enumerate(cubins)]
    ours = pylink.link(inputs, arch="sm_103", warning_as_error=True)
    assert [(found.kind, found.file) for found in ours.diagnostics] == [
        (KIND, "0.cubin"),
        (KIND, "2.cubin"),
    ]
    assert all(found.kind != KIND for found in pylink.link(inputs[:3], arch="sm_100").diagnostics)


@oracle.needs_oracle
def test_a_second_stage_guards_what_the_first_left() -> None:
    """A relocatable link for sm_100 is code of sm_100; one for sm_103 needs no more."""
    cubin = oracle.compile(SOURCE, "100")
    first = pylink.link([("m.cubin", cubin)], arch="sm_100", relocatable_link=True)
    second = pylink.link([("r.cubin", first.image)], arch="sm_103")
    assert [found.kind for found in second.diagnostics] == [KIND]
    assert asserts_guarded(second.image) > 50
    first = pylink.link([("m.cubin", cubin)], arch="sm_103", relocatable_link=True)
    second = pylink.link([("r.cubin", first.image)], arch="sm_103")
    assert second.diagnostics == ()
    assert asserts_guarded(second.image) > 50


def siblings() -> list[tuple[int, int]]:
    """Chips of the family with a mercury form: code of the first runs on the second."""
    return [
        (chip, target)
        for target in ARCHITECTURES
        if Target(f"sm_{target}").family == FAMILY_C
        for chip in ARCHITECTURES
        if chip != target and Target(f"sm_{target}").accepts(chip, specific=False)
    ]


@functools.cache
def timed(release: str, sm: int) -> tuple[set[int], set[int]]:
    """The operations that never set a scoreboard, and those that set one somewhere."""
    version = older.ptx_version(release)
    lowest = min(chip for pair in siblings() if sm in pair for chip in pair)
    cubin = older.assemble(ptx_forms.module(str(lowest), version), str(sm), (), release)
    uses: Counter[tuple[int, bool]] = Counter()
    for words in schedules.code(cubin).values():
        for word in words:
            sets = schedules.written_scoreboard(word) != schedules.NO_SCOREBOARD
            uses[schedules.operation(word), sets] += 1
    some = {operation for operation, sets in uses if sets}
    return {operation for operation, sets in uses if not sets} - some, some


@pytest.mark.parametrize("pair", siblings(), ids=str)
@pytest.mark.parametrize("release", [oracle.DEFAULT, *oracle.others(), *oracle.by_library()])
@oracle.needs_oracle
def test_no_other_operation_has_a_fixed_time_on_one_chip_alone(
    release: str, pair: tuple[int, int]
) -> None:
    """Of all forms of PTX instructions that there are for both."""
    chip, target = pair
    fixed, _ = timed(release, chip)
    _, varies = timed(release, target)
    relies = float(release) < 13.3 and chip in ARCHITECTURES[target].untimed
    assert fixed & varies == (set(schedules.UNTIMED) if relies else set())


def test_the_chips_that_share_code() -> None:
    assert siblings() == [(100, 103), (120, 121)]
