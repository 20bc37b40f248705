"""EXITs of kernels that ptxas did not optimize, which have no schedule that a barrier could use."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import oracle
from helpers.compare import compare
from helpers.side_by_side import OURS, THEIRS, nvlink, pylink

SOURCE = """
__global__ void plain(int *p) { *p = 1; }
__global__ void returns(int *p, int n)
{
    if (threadIdx.x > n) return;
    p[threadIdx.x] = n;
    __threadfence();
    if (n == 3) return;
    atomicAdd(p, n);
}
__global__ void shares(int *p, int n)
{
    __shared__ int s[32];
    s[threadIdx.x] = n;
    __syncthreads();
    for (int i = 0; i < n; i++) p[i] = s[i & 31];
}
__global__ void stores(cudaSurfaceObject_t s, int n)
{
    surf1Dwrite(n, s, 4);
    if (n > 3) asm volatile("exit;");
    surf1Dwrite(n, s, 8);
}
__global__ void last(int *p) { *p = 1; __nanosleep(100); }
"""


@pytest.mark.parametrize("words", [(), ("-g",), ("-r",), ("-r", "-g")], ids=" ".join)
@pytest.mark.parametrize("level", ["-O0", "-O1"])
@pytest.mark.parametrize("arch", ["100", "110", "120"])
@pytest.mark.parametrize("release", [oracle.DEFAULT, *oracle.others()])
@oracle.needs_oracle
def test_their_barriers_are_nvlinks(
    tmp_path: Path, release: str, arch: str, level: str, words: tuple[str, ...]
) -> None:
    with oracle.release(release):
        cubin = oracle.compile(SOURCE, arch, [level])
        (tmp_path / "m.cubin").write_bytes(cubin)
        said = (f"-arch=sm_{arch}", *words, "m.cubin")
        theirs = nvlink(tmp_path, said)
        ours = pylink(tmp_path, [*said, "--merc-dedup=off", f"--nvlink-version={release}"])
    assert theirs == ours
    assert theirs.code == 0, theirs
    assert compare((tmp_path / OURS).read_bytes(), (tmp_path / THEIRS).read_bytes()) == []
