"""Constants that a link which selects kernels leaves out, since the bank has no room for all.

Where one section of constants stays, `features/memory.rows` compares with nvlink; it packs several
without their alignments (docs/nvlink-differences.md).
"""

from __future__ import annotations

import random
from itertools import pairwise
from struct import unpack_from

import pytest
from helpers import oracle
from helpers.compare import compare

import pylink
from pylink.inspect.image import Image

HEAD = ".version 9.0\n.target sm_{arch}\n.address_size 64\n"
KERNEL = """
.visible .entry {name}(.param .u64 p)
{{
    .reg .b32 %x;
    .reg .b64 %a;
    ld.param.u64 %a, [p];
    ld.const.u32 %x, [{constant}];
    st.global.u32 [%a], %x;
    ret;
}}
"""
# Of `aligned` only a table has the address, in the section of `first`, which `wanted` reads.
FILES = (
    ".visible .const .align 4 .b8 odd[5] = {9, 8, 7, 6, 5};\n",
    ".extern .const .align 64 .b8 aligned[0x6000];\n"
    ".visible .const .align 4 .u32 first = 77;\n"
    ".visible .const .align 8 .u64 table[2] = {aligned, aligned+64};\n"
    + KERNEL.format(name="wanted", constant="first"),
    ".visible .const .align 4 .b8 other[0xa000] = {1, 2, 3};\n"
    + KERNEL.format(name="dead", constant="other"),
    ".visible .const .align 64 .b8 aligned[0x6000] = {3, 4, 5};\n",
    ".extern .const .align 4 .b8 other[0xa000];\n"
    ".visible .const .align 8 .u64 names_other[1] = {other};\n",
)
ALL = {"odd", "first", "table", "aligned", "other", "names_other"}


def inputs(arch: str) -> list[tuple[str, bytes]]:
    head = HEAD.format(arch=arch)
    return [
        (f"m{number}.cubin", oracle.assemble(head + text, arch))
        for number, text in enumerate(FILES)
    ]


@pytest.mark.parametrize(
    ("variables", "kept"),
    [([], {"first", "table", "aligned"}), (["od"], {"odd", "first", "table", "aligned"})],
)
@pytest.mark.parametrize("arch", ["80", "90", "100"])
@oracle.needs_oracle
def test_what_stays_is_whole_and_aligned(arch: str, variables: list[str], kept: set[str]) -> None:
    result = pylink.link(
        inputs(arch), arch=f"sm_{arch}", kernels_used=["wanted"], variables_used=variables
    )
    image = Image(result.image)
    table, bank = image.section(".symtab"), image.section(".nv.constant3")
    assert table
    assert bank
    rows = dict(zip(image.symbols, image.entries(table, "<IBBHQQ"), strict=True))
    assert ALL & rows.keys() == kept
    data = image.content(bank)
    value = {name: rows[name][4] for name in kept}
    ends = sorted((value[name], value[name] + rows[name][5]) for name in kept)
    assert all(end <= start for (_, end), (start, _) in pairwise(ends))
    assert ends[-1][1] <= len(data)
    assert value["aligned"] % 64 == value["table"] % 8 == value["first"] % 4 == 0
    assert data[value["first"] :][:4] == (77).to_bytes(4, "little")
    assert data[value["aligned"] :][:4] == bytes([3, 4, 5, 0])
    if "odd" in kept:
        assert data[value["odd"] :][:5] == bytes([9, 8, 7, 6, 5])
    # Addresses of constants are places in the bank.
    place = value["aligned"]
    assert unpack_from("<QQ", data, value["table"]) == (place, place + 64)


@oracle.needs_oracle
def test_all_is_refused_where_what_is_used_has_no_room() -> None:
    with pytest.raises(pylink.LinkError, match="too much global constant data"):
        pylink.link(inputs("80"), arch="sm_80", kernels_used=["wanted"], variables_used=["other"])


def draw(chance: random.Random, arch: str) -> list[bytes]:
    """Cubins with constants that fill more than half of the bank, of which kernels read some."""
    room, count = 0x10000 - 0x200, chance.randint(1, 4)
    texts = [""] * count
    for number in range(6):
        align = chance.choice([4, 8, 64])
        size = min(chance.choice([4, 64, 0x1000, 0x3000, 0x6000]), max(room // align, 1) * align)
        room -= size
        file = chance.randrange(count)
        values = ", ".join(str(chance.randint(0, 2)) for _ in range(4))
        name = f"c{number}"
        texts[file] += f".visible .const .align {align} .b8 {name}[{size}] = {{{values}}};\n"
        if chance.random() < 0.6:
            texts[file] += KERNEL.format(name=f"k{number}", constant=name)
    return [oracle.assemble(HEAD.format(arch=arch) + text, arch) for text in texts]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("arch", ["80", "100"])
@oracle.needs_oracle
def test_all_stays_where_the_bank_has_room(arch: str, seed: int) -> None:
    """From sm_100 on, the sections of the final file repeat the bank, which counts once."""
    cubins = draw(random.Random(seed), arch)
    expected = oracle.link(cubins, arch, ["-kernels-used=k0"]).image
    assert expected
    inputs = [(f"m{number}.cubin", cubin) for number, cubin in enumerate(cubins)]
    made = pylink.link(inputs, arch=f"sm_{arch}", kernels_used=["k0"]).image
    assert compare(made, expected) == []
