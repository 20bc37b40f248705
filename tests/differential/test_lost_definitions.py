"""Definitions that lose do nothing: no section, no call row, no address taken."""

from __future__ import annotations

import itertools

import pytest
from helpers import oracle
from helpers.copies_ptx import FEW, MANY, file
from helpers.side_by_side import differences

import pylink
from pylink.inspect.image import Image

pytestmark = oracle.needs_oracle
ARCHS = pytest.mark.parametrize("arch", ["75", "90a", "100"])
OPTIONS = pytest.mark.parametrize("options", [[], ["-r"]], ids=str)


@ARCHS
@OPTIONS
@pytest.mark.parametrize("space", ["global", "const"])
def test_a_lost_variable_makes_no_section(arch: str, space: str, options: list[str]) -> None:
    """Its bytes make one, after all symbols of the file."""
    first = file(arch, 1, tables={"weak table": "0"})
    second = file(arch, 2, space=space, tables={"weak table": "1", "visible more": "2"})
    third = file(arch, 3, space=space, tables={"visible other": "own3", "weak table": "1"})
    same_space = [first, second, third] if space == "global" else [second, third]
    for cubins in itertools.permutations(same_space):
        assert differences(list(cubins), arch, options) == []


@ARCHS
@pytest.mark.parametrize(
    "options", [[], ["-r"], ["--kernels-used=k1"], ["--kernels-used=k2"]], ids=str
)
def test_an_address_that_a_lost_copy_takes(arch: str, options: list[str]) -> None:
    """Which prototypes the output has, and what an indirect call reaches."""
    plain = file(arch, 1, FEW)
    for values in (FEW, MANY, FEW // 2):
        taking = file(arch, 2, values, tables={"visible table": "f"})
        assert differences([plain, taking], arch, options) == []
        assert differences([taking, plain], arch, options) == []


@ARCHS
def test_a_table_of_a_lost_copy_keeps_the_function(arch: str) -> None:
    """nvlink removes the function, and with it the entry of the table."""
    user = """
        .version 9.0
        .target sm_{arch}
        .address_size 64
        .extern .global .align 8 .u64 table[1];
        .visible .entry only(.param .u64 p) {{
          .reg .u64 %rd<4>;
          ld.param.u64 %rd1, [p];
          ld.global.u64 %rd2, [table];
          st.global.u64 [%rd1], %rd2;
          ret;
        }}
    """
    cubins = [
        file(arch, 1, FEW),
        file(arch, 2, MANY, tables={"visible table": "f"}),
        oracle.compile(user.format(arch=arch), arch, name="m.ptx"),
    ]
    theirs = oracle.link(cubins, arch, ["--kernels-used=only"])
    assert theirs.image is not None
    assert Image(theirs.image).section(".text.f") is None
    ours = bytes(pylink.link(cubins, arch=f"sm_{arch}", kernels_used=["only"]).image)
    assert Image(ours).section(".text.f") is not None
    assert "f" in Image(ours).symbols


@pytest.mark.parametrize(("arch", "targets"), [("90a", "75 80 90"), ("100", "75 80 100")])
def test_the_first_copy_is_the_measure_of_newer_ptx(arch: str, targets: str) -> None:
    """Not the current one: in 75, 90, 80 the third copy wins."""
    for chain in itertools.product(targets.split(), repeat=3):
        cubins = [file(arch, mark, FEW, target=target) for mark, target in enumerate(chain)]
        assert differences(cubins, arch, []) == [], chain
