"""Cubins that the real compiler made: what folds, and what must not."""

from __future__ import annotations

import pytest
from helpers import oracle
from helpers.dedup_sources import TEMPLATES

from pylink.dedup import MercuryObject, compare, fold

pytestmark = oracle.needs_oracle

ARCHS = ("100", "103", "120")
FLAGS: tuple[tuple[str, ...], ...] = ((), ("-lineinfo",), ("-G",))

ANOTHER_INSTANCE = TEMPLATES + "template __global__ void apply<double>(double *, int);\n"
STATIC_FUNCTION = (
    TEMPLATES
    + """
static __device__ __noinline__ int twice(int x) { return 2 * x + threadIdx.x; }
template<int N> __global__ void use(int *p) { p[N] = twice(p[N]); }
template __global__ void use<1>(int *);
"""
)
STATIC_VARIABLE = (
    TEMPLATES
    + """
static __device__ int counter;
template<int N> __global__ void count(int *p) { p[N] = atomicAdd(&counter, N); }
template __global__ void count<1>(int *);
"""
)


def read(source: str, arch: str, flags: tuple[str, ...] = (), name: str = "a.cu") -> MercuryObject:
    return MercuryObject.from_cubin(oracle.compile(source, arch, flags, name=name), name)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("flags", FLAGS, ids=["plain", "lineinfo", "G"])
def test_identical_template_only_units_fold(arch: str, flags: tuple[str, ...]) -> None:
    items = [read(TEMPLATES, arch, flags) for _ in range(3)]
    assert items[0].size > 0
    for prefilter in ("xxh3", "none"):
        result = fold(items, prefilter=prefilter)
        assert result.reference == [None, 0, 0]
        assert result.payload_bytes == 2 * items[0].size


@pytest.mark.parametrize("arch", ARCHS)
def test_units_of_other_names_fold_without_line_tables(arch: str) -> None:
    assert compare(read(TEMPLATES, arch), read(TEMPLATES, arch, name="b.cu")).code == 0


@pytest.mark.parametrize("arch", ARCHS)
def test_line_tables_name_their_file(arch: str) -> None:
    flags = ("-lineinfo",)
    verdict = compare(read(TEMPLATES, arch, flags), read(TEMPLATES, arch, flags, name="bb.cu"))
    assert verdict.code in (17, 19)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("flags", FLAGS[:2], ids=["plain", "lineinfo"])
def test_one_more_instance_keeps_the_whole_object(arch: str, flags: tuple[str, ...]) -> None:
    ours, theirs = read(TEMPLATES, arch, flags), read(ANOTHER_INSTANCE, arch, flags)
    assert compare(ours, theirs).code in (17, 19)
    assert compare(theirs, ours).code in (17, 19)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("source", [STATIC_FUNCTION, STATIC_VARIABLE], ids=["function", "variable"])
def test_local_symbols_keep_equal_bytes_apart(arch: str, source: str) -> None:
    ours, theirs = read(source, arch), read(source, arch)
    assert compare(ours, theirs, identity="bytes").code == 0
    verdict = compare(ours, theirs)
    assert (verdict.code, verdict.stage) == (18, 3)
    assert "of its own file" in verdict.reason
    assert fold([ours, theirs]).reference == [None, None]


@pytest.mark.parametrize("arch", ["75", "80", "90a"])
def test_older_architectures_have_no_mercury_sections(arch: str) -> None:
    item = read(TEMPLATES, arch)
    assert (item.headers, item.targets, item.unlisted) == ((), (), ())
