"""Kernels that name extern arrays of shared memory, weak and others mixed, in links with `-r`.

nvlink gives each a symbol of its own. Weak kernels, which instances of templates are, come before
the others in symbol tables, whatever the order of their code.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import oracle
from helpers.side_by_side import THEIRS, output_differences

pytestmark = oracle.needs_oracle

SOURCE = """
extern __shared__ int array[];
template <int N> __global__ void copied(int *p)
{{
    array[threadIdx.x * 4 + N] = p[0];
    __syncthreads();
    p[1] = array[threadIdx.x + 3 + N];
    for (int i = 0; i < p[{turns}]; i++) p[i] = array[i * 7] + array[p[i]];
}}
__global__ void first{name}(int *p) {{ array[0] = p[0]; __syncthreads(); p[1] = array[3]; }}
template __global__ void copied<1>(int *);
__global__ void second{name}(int *p, int **q) {{ q[0] = array + 4; }}
template __global__ void copied<{other}>(int *);
__global__ void third{name}(int *p) {{ p[1] = array[threadIdx.x ^ 5]; }}
"""
FILES = {
    "a": (SOURCE.format(name="a", turns=5, other=2), ()),
    "b": (SOURCE.format(name="b", turns=5, other=3), ()),
    # Copies that are better than those of the files before.
    "c": (SOURCE.format(name="c", turns=6, other=2), ("-maxrregcount=24",)),
}


@pytest.mark.parametrize("options", [(), ("-preserve-relocs",), ("-g",)], ids="".join)
@pytest.mark.parametrize("names", ["a", "ab", "ba", "ac", "ca", "bca"])
@pytest.mark.parametrize("arch", ["75", "80", "90a", "100", "120"])
def test_an_object_and_what_is_made_of_it(
    tmp_path: Path, arch: str, names: str, options: tuple[str, ...]
) -> None:
    for name in names:
        source, flags = FILES[name]
        (tmp_path / f"{name}.cubin").write_bytes(oracle.compile(source, arch, flags))
    files = [f"{name}.cubin" for name in names]
    assert output_differences(tmp_path, [f"-arch=sm_{arch}", "-r", *options, *files]) == []
    (tmp_path / THEIRS).rename(tmp_path / "stage.cubin")
    # Without -g nvlink would take out the barriers again (docs/nvlink-differences.md).
    for words in [("-g",)] if "-g" in options else [(), ("-r",), ("-g",)]:
        assert output_differences(tmp_path, [f"-arch=sm_{arch}", *words, "stage.cubin"]) == []
