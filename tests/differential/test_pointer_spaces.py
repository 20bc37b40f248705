"""Code that asks where a pointer points to: the link supplies the size of the constant bank.

Each file has a local symbol `.nv.ptx.const0.size` for it, and an output of `-r` one for all files.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import oracle
from helpers.side_by_side import THEIRS, output_differences

pytestmark = oracle.needs_oracle

ASKING = """
__device__ __noinline__ int ask_{name}(int *p)
{{
    return __isConstant(p) + 2 * __isGlobal(p) + 4 * __isShared(p) + 8 * __isLocal(p);
}}
__global__ void use_{name}(int **p, int *q) {{ q[0] = ask_{name}(p[1]); }}
"""
SILENT = """
__constant__ int table_{name}[5];
__global__ void use_{name}(int **p, int *q) {{ q[0] = table_{name}[q[1]]; }}
"""
# Which of the files ask.
ORDERS = {"all": "aaa", "first": "as", "last": "sa", "around": "asa"}


@pytest.mark.parametrize("flags", [(), ("-lineinfo",), ("-G",)], ids="".join)
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS.keys())
@pytest.mark.parametrize("arch", ["75", "90a", "100", "120"])
def test_links_have_one_size_of_the_constant_bank(
    tmp_path: Path, arch: str, order: str, flags: tuple[str, ...]
) -> None:
    names = []
    for number, kind in enumerate(order):
        source = (ASKING if kind == "a" else SILENT).format(name=f"f{number}")
        names.append(f"f{number}.cubin")
        (tmp_path / names[-1]).write_bytes(oracle.compile(source, arch, flags))
    stages: list[tuple[str, ...]] = [("-r",), ("-r", "-g"), (), ("-g",)]
    target = f"-arch=sm_{arch}"
    for words in stages:
        assert output_differences(tmp_path, [target, *words, *names]) == []
    assert output_differences(tmp_path, [target, "-r", *names[:-1]]) == []
    (tmp_path / THEIRS).rename(tmp_path / "stage.cubin")
    for words in [(), ("-r",)]:
        assert output_differences(tmp_path, [target, *words, "stage.cubin", names[-1]]) == []
