"""Rows about what PTX alone can say, executed."""

from __future__ import annotations

import struct

import pytest
from differential.test_aliases import FUNCTION, KERNEL
from helpers import oracle

from emulator.audit import findings
from emulator.grid import Grid
from emulator.load import Loaded
from emulator.program import Program
from emulator.rows import ALL, LANES, assembled, executes, ours, result, theirs

pytestmark = oracle.needs_oracle
LATER = pytest.mark.skipif(not oracle.others(), reason="needs nvlink 13.3 or later")

ENTRY = """
.visible .entry k(.param .u64 p) {
    .reg .b64 %a; .reg .b32 %v, %i; .reg .b64 %o;
    ld.param.u64 %a, [p];
    mov.u32 %i, %tid.x;
    mul.wide.u32 %o, %i, 4;
    add.u64 %a, %a, %o;
"""


@executes("a `.weak` variable after a `.common` one")
@LATER
@ALL
def test_weak_variable_behind_a_common_one(arch: str) -> None:
    """nvlink 13.3 and later ends by a signal, or from sm_100 on with an internal error."""
    first = ".common .global .align 4 .b8 v[8];\n" + ENTRY
    first += "atom.global.add.u32 %v, [v+4], %i; membar.gl; bar.sync 0;"
    first += "ld.global.u32 %v, [v+4]; st.global.u32 [%a], %v; ret; }\n"
    with oracle.release(oracle.others()[-1]):
        files = [assembled(first, arch), assembled(".weak .global .align 4 .b8 v[8];\n", arch)]
        assert oracle.link(files, arch).image is None
        assert result(ours(files, arch), arch) == [LANES * (LANES - 1) // 2] * LANES


@executes("variables with addresses of constants, one after the other")
@pytest.mark.parametrize("arch", ["75", "80", "86", "89"])
def test_addresses_in_32_bits_behind_one_another(arch: str) -> None:
    """nvlink writes the upper half of the first address over the second."""
    text = ".const .align 4 .u32 before[3] = {7, 8, 9};\n"
    text += ".const .align 4 .u32 c[4] = {11, 12, 13, 14};\n"
    text += ".const .align 4 .u32 b[2] = {c+8, c};\n" + ENTRY
    text += """
        .reg .b32 %t; .reg .b64 %w;
        and.b32 %t, %i, 1;
        mul.wide.u32 %o, %t, 4;
        mov.u64 %w, b;
        add.u64 %w, %w, %o;
        ld.const.u32 %t, [%w];
        cvt.u64.u32 %w, %t;
        ld.const.u32 %v, [%w];
        st.global.u32 [%a], %v;
        ret; }
    """
    file = assembled(text, arch)
    expected = [11 if lane & 1 else 13 for lane in range(LANES)]
    assert result(ours([file], arch), arch) == expected
    assert result(theirs([file], arch), arch) != expected


@executes("PTX `.alias` of a kept function")
@ALL
def test_alias_that_nothing_calls(arch: str) -> None:
    """nvlink ends with an internal error."""
    file = assembled(FUNCTION + KERNEL.replace("CALLED", "function"), arch)
    assert "Internal error: reference to deleted symbol" in oracle.link([file], arch).stderr
    found = result(ours([file], arch), arch, "kernel")
    assert found == [3, *range(1, LANES)]


@executes("a `.weak .entry` beside")
@ALL
def test_weak_kernel_beside_a_visible_one(arch: str) -> None:
    """nvlink's bank 0 has room for the parameters of both copies."""
    weak = ".weak .entry k(.param .u64 p, .param .u64 q, .param .u64 r)"
    body = "{ .reg .b64 %a; ld.param.u64 %a, [r]; st.global.u32 [%a], 5; ret; }\n"
    files = [assembled(weak + body, arch)]
    files.append(assembled(ENTRY + "mad.lo.u32 %v, %i, 3, 7; st.global.u32 [%a], %v; ret; }", arch))
    for order in (files, files[::-1]):
        for link in (theirs, ours):
            loaded = Loaded(link(order, arch), arch)
            data = loaded.memory.place(bytes(4 * LANES))
            grid = Grid(Program(loaded), "k", parameters=data.to_bytes(8, "little"))
            grid.run()
            found = struct.unpack(f"<{LANES}I", loaded.memory.read(data, 4 * LANES))
            assert list(found) == [lane * 3 + 7 for lane in range(LANES)]
            assert bool(findings(grid)) == (link is theirs and arch != "100"), findings(grid)
