"""Offsets of constants in mercury code, where a stage resolves some of them and leaves others."""

from __future__ import annotations

import io

import pytest
from helpers import oracle
from helpers.side_by_side import differences

import pylink
from pylink.inspect.image import Image

pytestmark = oracle.needs_oracle

# Weak constants wait for a later stage, the others do not.
WEAK = """
inline __constant__ int weak_list[2000] = {1};
inline __constant__ int weak_one = 3;
"""
FIRST = f"""{WEAK}
__constant__ int own_list[6] = {{3}};
__constant__ int own = 4;
__device__ __noinline__ int f(int i) {{ return weak_list[i] + weak_one + own_list[i] + own; }}
__global__ void ka(int *p) {{ *p = f(*p) + weak_one + own + weak_list[3] + own_list[2]; }}
"""
SECOND = f"""{WEAK}
extern __device__ int f(int);
__constant__ float w = 2;
__global__ void kb(int *p) {{ p[0] = f(p[1]) + weak_list[p[2]] + weak_one + w + weak_list[1]; }}
"""


@pytest.mark.parametrize("arch", ["90a", "100", "120"])
@pytest.mark.parametrize("options", [[], ["-r"], ["-g"]], ids=str)
@pytest.mark.parametrize("before", ["a", "b", "ab"])
def test_stages_equal_nvlinks(arch: str, before: str, options: list[str]) -> None:
    cubins = {"a": oracle.compile(FIRST, arch), "b": oracle.compile(SECOND, arch)}
    first = oracle.link([cubins[name] for name in before], arch, ["-r"])
    assert first.image is not None
    rest = [cubins[name] for name in "ab" if name not in before]
    assert differences([cubins[name] for name in before], arch, ["-r"]) == []
    assert differences([first.image, *rest], arch, options) == []
    assert differences([*rest, first.image], arch, options) == []


@pytest.mark.parametrize("arch", ["100", "120"])
def test_a_broken_record_is_an_error(arch: str) -> None:
    cubin = bytearray(oracle.compile(FIRST, arch))
    capsule = Image(bytes(cubin)).section(".nv.capmerc.text._Z1fi")
    assert capsule is not None
    operand = cubin.index(b"\x02\x22", capsule.offset + 12)
    assert operand < capsule.offset + capsule.size
    cubin[operand] = 0x07
    log = io.StringIO()
    with pytest.raises(pylink.LinkError):
        pylink.link([bytes(cubin)], arch=f"sm_{arch}", log=log)
    assert ".nv.capmerc.text._Z1fi: mercury capsule is damaged" in log.getvalue()
