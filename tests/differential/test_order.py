"""The order reference against nvlink and against pylink, on generated and on random programs."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from helpers import oracle, programs
from helpers.copies_ptx import FEW, MANY, file
from helpers.keywords import keywords
from helpers.order import difference, observe, predict, selection

import pylink

ARCHS = ["75", "90a", "100", "120"]
pytestmark = [oracle.needs_oracle, pytest.mark.parametrize("arch", ARCHS)]


def check(cubins: Sequence[bytes], arch: str, options: Sequence[str] = ()) -> bytes:
    """Compare the prediction with both linkers; nvlink's image, empty where it refuses."""
    theirs = oracle.link(cubins, arch, options)
    if theirs.code or theirs.image is None:
        return b""
    predicted = predict(cubins, arch, relocatable="-r" in options, selected=selection(options))
    ours = pylink.link(cubins, arch=f"sm_{arch}", **keywords(options))
    assert difference(predicted, observe(theirs.image)) == "", f"nvlink {options}"
    assert difference(predicted, observe(bytes(ours.image))) == "", f"pylink {options}"
    return theirs.image


@pytest.mark.parametrize("seed", [3, 6])
def test_generated_programs(arch: str, seed: int) -> None:
    program = programs.generate(seed)
    cubins = [
        oracle.compile(module.source, arch, module.flags, name=module.name)
        for module in program.modules
    ]
    assert check(cubins, arch)
    first = check(cubins, arch, ["-r"])
    assert check([first], arch)
    check(cubins[::-1], arch)


def tables(rng: random.Random, mark: int) -> dict[str, str]:
    """Tables of a file: names that others have too, or not, and what they hold."""
    found = {}
    for number in range(rng.randrange(4)):
        shared = rng.random() < 0.5
        name = f"weak w{number}" if shared else f"visible t{mark}_{number}"
        entries = rng.sample(["f", f"own{mark}", "1", "v"], 2)
        found[name] = ", ".join(entries)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_random_copies(arch: str, seed: int) -> None:
    """Copies of a weak function, and tables with addresses, in two to four files."""
    rng = random.Random(seed)
    cubins = [
        file(arch, mark, rng.choice([FEW, FEW, MANY]), "global", tables(rng, mark))
        for mark in range(rng.randrange(2, 5))
    ]
    first = check(cubins, arch, ["-r"])
    assert first
    assert check([first], arch)
    assert check(cubins, arch)
    check(cubins, arch, ["--kernels-used=k0"])
    if len(cubins) > 2:
        part = oracle.link(cubins[:2], arch, ["-r"]).image
        assert part is not None
        assert check([part, *cubins[2:]], arch)
        assert check([*cubins[2:], part], arch)


TABLES = """\
.version 9.0
.target sm_{arch}
.address_size 64
.func {name}(.param .u64 p, .param .u32 x)
{{
  .reg .u64 %rd<4>;
  .reg .u32 %r<4>;
  .reg .pred %p<4>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [x];
  setp.gt.u32 %p1, %r1, 9;
  @%p1 bra done;
  table: .branchtargets {targets};
  brx.idx %r1, table;
  {cases}
  done: ret;
}}
.visible .entry k{mark}(.param .u64 p, .param .u32 x)
{{
  .reg .u64 %rd<6>;
  .reg .u32 %r<3>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [x];
  {{
    .param .u64 q;
    .param .u32 y;
    st.param.u64 [q], %rd1;
    st.param.u32 [y], %r1;
    call {name}, (q, y);
  }}
  ret;
}}
"""


@pytest.mark.parametrize("name", ["h", "ninechars", "averylongfunctionname"])
@pytest.mark.parametrize("options", [[], ["-r"]], ids=str)
def test_local_functions_of_one_name_with_tables(arch: str, name: str, options: list[str]) -> None:
    """From sm_100 on the name of their sections is shared, and renamed for each of them."""
    store = "st.volatile.global.u32 [%rd1+{at}], {value};"
    cubins = []
    for mark in (1, 2):
        cases = (
            f"L{i}: {store.format(at=16 * i, value=7 * i + mark)} bra done;" for i in range(10)
        )
        source = TABLES.format(
            arch=arch,
            name=name,
            mark=mark,
            targets=", ".join(f"L{i}" for i in range(10)),
            cases="\n".join(cases),
        )
        cubins.append(oracle.compile(source, arch, name="m.ptx"))
    assert check(cubins, arch, options)
