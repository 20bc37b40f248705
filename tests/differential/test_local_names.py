"""Local functions that share a name, in one object after a first stage."""

from __future__ import annotations

import pytest
from helpers import oracle
from helpers.compare import compare
from helpers.order.reader import Input

import pylink

pytestmark = oracle.needs_oracle

FILE = """\
.version 9.0
.target sm_{arch}
.address_size 64
.visible .global .u32 own{mark};
.func same(.param .u64 p)
{{
  .reg .u64 %rd<4>;
  .reg .u32 %r<4>;
  ld.param.u64 %rd1, [p];
  {more}
  mov.u64 %rd2, own{mark};
  st.global.u64 [%rd1], %rd2;
  ret;
}}
.visible .entry k{mark}(.param .u64 p)
{{
  .reg .u64 %rd<6>;
  ld.param.u64 %rd1, [p];
  {{ .param .u64 q; st.param.u64 [q], %rd1; call same, (q); }}
  ret;
}}
"""
MORE = "mov.u32 %r1, 5; st.global.u32 [%rd1+64], %r1;"


def cubins(arch: str) -> list[bytes]:
    texts = (FILE.format(arch=arch, mark=mark, more=MORE * (mark == 2)) for mark in (1, 2))
    return [oracle.compile(text, arch, name="m.ptx") for text in texts]


def named(image: bytes) -> list[set[str]]:
    """The variables that the code of each copy names."""
    linked = Input(image, linked=True)
    found = []
    for part in linked.parts:
        if part.kind == "relocations" and part.name.endswith(".text.same"):
            found.append({linked.mentions[e.symbol].name for e in linked.entries(part)})
    return found


@pytest.mark.parametrize("arch", ["75", "90a", "100", "120"])
def test_each_keeps_its_relocations(arch: str) -> None:
    """From sm_100 on nvlink gives all of them those of the first in a second stage."""
    files = cubins(arch)
    at_once = oracle.link(files, arch).image
    first = oracle.link(files, arch, ["-r"]).image
    assert at_once is not None
    assert first is not None
    assert compare(bytes(pylink.link(files, arch=f"sm_{arch}").image), at_once) == []
    ours = bytes(pylink.link([first], arch=f"sm_{arch}").image)
    assert named(ours) == [{"own1"}, {"own2"}]
    theirs = oracle.link([first], arch).image
    assert theirs is not None
    if arch in ("75", "90a"):
        assert compare(ours, theirs) == []
    else:
        assert named(theirs) == [{"own1"}, {"own1"}]
