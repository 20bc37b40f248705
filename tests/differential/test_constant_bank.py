"""Constant variables of all files that do not fit into their bank."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from helpers import oracle
from helpers.side_by_side import nvlink, pylink

pytestmark = oracle.needs_oracle

Variable = tuple[str, int, int]  # name, alignment, bytes


def assembled(kernel: str, variables: list[Variable], arch: str) -> bytes:
    """A cubin with these variables, all of which its kernel reads."""
    lines = [".version 9.0", f".target sm_{arch}", ".address_size 64"]
    lines += [f".visible .const .align {a} .b8 {name}[{size}];" for name, a, size in variables]
    lines += [f".visible .entry {kernel}(.param .u64 p) {{", ".reg .u64 a;", ".reg .u16 v;"]
    lines.append("ld.param.u64 a, [p];")
    for name, _, _ in variables:
        lines += [f"ld.const.u8 v, [{name}];", "st.global.u8 [a], v;"]
    return oracle.assemble("\n".join([*lines, "ret;", "}", ""]), arch)


def files(rng: Random) -> list[list[Variable]]:
    """Two or three files, of which two have a variable of more than half of the bank."""
    made: list[list[Variable]] = []
    for file in range(rng.choice([2, 2, 3])):
        variables = []
        for number in range(rng.randint(1, 4)):
            align = 1 << rng.randint(0, 6)
            size = rng.choice([rng.randint(1, 70), align * rng.randint(1, 9)])
            variables.append((f"v{file}_{number}", align, size))
        if file < 2:
            variables.append((f"large{file}", 1 << rng.randint(0, 5), rng.randint(0x9000, 0x9040)))
        rng.shuffle(variables)
        made.append(variables)
    return made


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("arch", ["80", "90", "100"])
def test_too_many_bytes_are_counted_as_nvlink_counts_them(
    tmp_path: Path, arch: str, seed: int
) -> None:
    words = [f"-arch=sm_{arch}", "-v"]
    for number, variables in enumerate(files(Random(seed))):
        words.append(f"{number}.cubin")
        (tmp_path / words[-1]).write_bytes(assembled(f"k{number}", variables, arch))
    expected = nvlink(tmp_path, words)  # with -v, which names the bank's size, too
    assert "uses too much global constant data" in expected.lines[0]
    assert pylink(tmp_path, words) == expected
