"""PTX `.alias` where nvlink is wrong: all else is among the programs of `features/ptx.rows`."""

from __future__ import annotations

import pytest
from helpers import oracle
from helpers.compare import compare

import pylink
from pylink.inspect.image import Image

HEAD = ".version 9.0\n.target sm_{arch}\n.address_size 64\n"
FUNCTION = """
.visible .func (.param .b32 r) function(.param .b32 a)
{
    .reg .b32 %x;
    ld.param.b32 %x, [a];
    st.param.b32 [r], %x;
    ret;
}
.visible .func (.param .b32 r) other(.param .b32 a);
.alias other, function;
"""
KERNEL = """
.visible .entry kernel(.param .u64 p)
{
    .reg .b32 %x;
    .reg .b64 %a;
    ld.param.u64 %a, [p];
    {
        .param .b32 i, o;
        st.param.b32 [i], 3;
        call (o), CALLED, (i);
        ld.param.b32 %x, [o];
    }
    st.global.u32 [%a], %x;
    ret;
}
"""


def cubin(arch: str, *parts: str) -> bytes:
    return oracle.assemble(HEAD.format(arch=arch) + "".join(parts), arch)


@pytest.mark.parametrize("arch", ["80", "90", "100"])
@oracle.needs_oracle
def test_an_alias_that_nothing_calls_is_linked(arch: str) -> None:
    """nvlink removes it as dead code, and then finds its symbol."""
    image = cubin(arch, FUNCTION, KERNEL.replace("CALLED", "function"))
    theirs = oracle.link([image], arch)
    assert theirs.image is None
    assert "Internal error: reference to deleted symbol" in theirs.stderr
    ours = Image(pylink.link([("m.cubin", image)], arch=f"sm_{arch}").image)
    table = ours.section(".symtab")
    assert table
    rows = dict(zip(ours.symbols, ours.entries(table, "<IBBHQQ"), strict=True))
    sections = [ours.section_name(rows[name][3]) for name in ("other", "function")]
    assert sections == [".text.function"] * 2
    assert [rows[name][4] for name in ("other", "function")] == [0, 0]


@oracle.needs_oracle
def test_the_frame_of_a_function_whose_alias_comes_first_is_that_of_its_code() -> None:
    """nvlink leaves the places of the mercury form in it, and gives the alias a size."""
    declared = ".extern .func (.param .b32 r) other(.param .b32 a);"
    caller = cubin("100", declared, KERNEL.replace("CALLED", "other"))
    callee = cubin("100", FUNCTION)
    ours, theirs = {}, {}
    for order in ((caller, callee), (callee, caller)):
        inputs = [(f"m{number}.cubin", data) for number, data in enumerate(order)]
        ours[order] = pylink.link(inputs, arch="sm_100", merc_dedup="off").image
        theirs[order] = oracle.link(order, "100").image or b""
    assert compare(ours[callee, caller], theirs[callee, caller]) == []
    differences = compare(ours[caller, callee], theirs[caller, callee])
    places = {line.split()[1].partition("+")[0].partition("[")[0] for line in differences}
    assert places == {".debug_frame", ".symtab"}
