"""Outputs at the edge of 65,280 section numbers: what has a number, and what is kept in reserve."""

from __future__ import annotations

import struct

import pytest
from helpers import oracle
from helpers.compare import compare

import pylink
from pylink.inspect.image import Image

pytestmark = oracle.needs_oracle


def file(arch: str, letter: str, kernels: int, functions: int = 0) -> bytes:
    """A cubin with `kernels` and with `functions` that nobody calls."""
    names = [f".visible .entry k{letter}{i:05}" for i in range(kernels)]
    names += [f".visible .func f{letter}{i:05}" for i in range(functions)]
    head = f".version 9.0\n.target sm_{arch}\n.address_size 64\n"
    return oracle.compile(head + "".join(f"{n}() {{ ret; }}\n" for n in names), arch, name="m.ptx")


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


@pytest.mark.parametrize(("count", "gap"), [(5, 36), (8, 0), (11, 36)])
def test_room_for_names_of_wide_indices(count: int, gap: int) -> None:
    """Where only the final file is wide, the names stand where room was kept for them.

    nvlink's outputs of 16,000, 18,000 and 22,000 kernels, which take it minutes, equal pylink's.
    """
    image = bytes(pylink.link(files("100", count, 2000), arch="sm_100").image)
    (table,) = struct.unpack_from("<Q", image, 40)
    rows = [struct.unpack_from("<QQ", image, table + 64 * i + 24) for i in (1, 2)]
    assert rows[1][0] - sum(rows[0]) == gap
