"""Outputs at the edge of 65,280 section numbers: what has a number, and what is kept in reserve."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from helpers import oracle
from helpers.compare import compare

import pylink
from pylink.inspect.image import Image

pytestmark = oracle.needs_oracle

RELEASES = [oracle.DEFAULT, *oracle.others()]


# Variables, and the code of a function with two relocations that have no addend.
VARIABLES = ".visible .global .u64 g;\n.visible .global .u64 h;\n"
STORE = ".reg .u64 a<2>; mov.u64 a0, g; mov.u64 a1, h; st.global.u64 [a0], a1; "


def file(arch: str, letter: str, kernels: int, functions: int = 0, does: str = "") -> bytes:
    """A cubin with `kernels`, and with `functions` that nobody calls and that do something."""
    text = f".version 9.0\n.target sm_{arch}\n.address_size 64\n{VARIABLES if does else ''}"
    text += "".join(f".visible .entry k{letter}{i:05}() {{ ret; }}\n" for i in range(kernels))
    text += "".join(
        f".visible .func f{letter}{i:05}() {{ {does}ret; }}\n" for i in range(functions)
    )
    return oracle.compile(text, arch, name="m.ptx")


def files(arch: str, count: int, kernels: int) -> list[bytes]:
    """Cubins that differ in names alone."""
    first = file(arch, "A", kernels)
    return [first.replace(b"kA0", b"k%c0" % (ord("A") + i)) for i in range(count)]


@pytest.mark.parametrize("dead", [32, 33])
def test_sections_of_dead_code_have_numbers(dead: int) -> None:
    """A function that nobody calls is worth two; the 33rd makes the output wide."""
    cubins = [*files("75", 2, 4346), file("75", "C", 4348, dead)]
    theirs = oracle.link(cubins, "75").image
    assert theirs is not None
    ours = bytes(pylink.link(cubins, arch="sm_75").image)
    assert (Image(ours).section(".symtab_shndx") is not None) == (dead == 33)
    assert compare(ours, theirs) == []


@pytest.mark.parametrize("release", [name for name in RELEASES if name in ("13.0", "13.5")])
def test_relocations_of_dead_code_have_numbers(release: str) -> None:
    """Each function reserves one for .rela, and up to 13.4 one for .rel, in which no entry is."""
    with oracle.release(release):
        cubins = [*files("90", 2, 4346), file("90", "C", 4338, 33, STORE)]
        theirs = oracle.link(cubins, "90").image
    assert theirs is not None
    chosen: dict[str, Any] = {"nvlink_version": release}
    ours = bytes(pylink.link(cubins, arch="sm_90", **chosen).image)
    assert (Image(ours).section(".symtab_shndx") is not None) == (release == "13.0")
    assert compare(ours, theirs) == []


@pytest.mark.parametrize(("count", "gap"), [(5, 36), (8, 0), (11, 36)])
def test_room_for_names_of_wide_indices(count: int, gap: int) -> None:
    """Where only the final file is wide, the names stand where room was kept for them.

    nvlink's outputs of 16,000, 18,000 and 22,000 kernels, which take it minutes, equal pylink's.
    """
    image = bytes(pylink.link(files("100", count, 2000), arch="sm_100").image)
    (table,) = struct.unpack_from("<Q", image, 40)
    rows = [struct.unpack_from("<QQ", image, table + 64 * i + 24) for i in (1, 2)]
    assert rows[1][0] - sum(rows[0]) == gap
