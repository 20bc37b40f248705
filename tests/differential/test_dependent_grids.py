"""Kernels that let grids which depend on them start early, which records say from 13.4 on."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import oracle
from helpers.side_by_side import THEIRS, output_differences

STARTS = 'asm volatile("griddepcontrol.launch_dependents;");'
FILES = {
    "kernels": f"""
extern __device__ void calls(int *);
__global__ void none(int *p) {{ p[0] = 1; }}
__global__ void waits(int *p)
{{
    asm volatile("griddepcontrol.wait;" ::: "memory");
    p[0] = 1;
}}
__global__ void starts(int *p) {{ p[0] = 1; {STARTS} p[1] = 2; }}
__global__ void reaches(int *p) {{ p[0] = 1; calls(p); }}
""",
    "calls": """
extern __device__ void deep(int *);
__device__ void calls(int *p) { p[1] = 1; deep(p); }
""",
    "deep": f"__device__ void deep(int *p) {{ p[2] = 1; {STARTS} p[3] = 1; }}",
    "pointer": f"""
__device__ void pointed(int *p) {{ p[2] = 1; {STARTS} p[3] = 1; }}
__device__ void (*table)(int *) = pointed;
__global__ void jumps(int *p) {{ table(p); }}
""",
    "unused": f"__device__ void unused(int *p) {{ p[2] = 1; {STARTS} p[3] = 1; }}",
    "lone": """
extern __device__ void calls(int *);
__global__ void lone(int *p) { p[0] = 1; calls(p); }
""",
}
LINKS = [
    ("kernels", "calls", "deep"),
    ("lone", "calls", "deep"),
    ("pointer",),
    ("pointer", "unused", "kernels", "calls", "deep"),
]


@pytest.mark.parametrize("files", LINKS, ids="-".join)
@pytest.mark.parametrize(
    ("compiler", "arch"),
    # For sm_120 nvlink compiles such code of older objects anew.
    [("", "90"), ("", "100"), ("", "120"), (oracle.DEFAULT, "90"), (oracle.DEFAULT, "100")],
)
@pytest.mark.parametrize("release", oracle.others())
@oracle.needs_oracle
def test_kernels_say_whether_dependent_grids_start(
    tmp_path: Path, release: str, compiler: str, arch: str, files: tuple[str, ...]
) -> None:
    """Objects of older compilers have no record of it, only the instruction."""
    for name in files:
        with oracle.release(compiler or release):
            cubin = oracle.compile(FILES[name], arch)
        (tmp_path / f"{name}.cubin").write_bytes(cubin)
    names = [f"{name}.cubin" for name in files]
    with oracle.release(release):
        for words in [(), ("-g",), ("-r",)]:
            assert output_differences(tmp_path, [f"-arch=sm_{arch}", *words, *names]) == []
        (tmp_path / THEIRS).rename(tmp_path / "stage.cubin")
        assert output_differences(tmp_path, [f"-arch=sm_{arch}", "stage.cubin"]) == []
