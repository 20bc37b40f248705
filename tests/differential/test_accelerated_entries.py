"""Files with code for one chip (sm_90a) beside code for all that follow (sm_90).

Which of the two a link for the plain target takes depends on the release that it follows, also
where only the inputs say which that is.
"""

from __future__ import annotations

import itertools
import re

import pytest
from differential.test_inputs import check, host, packed_by_fatbinary
from helpers import archive_builder, oracle

import pylink

pytestmark = oracle.needs_oracle

SOURCE = """.version 9.0
.target sm_{arch}
.address_size 64
.visible .global .align 4 .u32 chosen_{tag} = 1;
.visible .entry {name}(.param .u64 p) {{
    .reg .b64 %a;
    ld.param.u64 %a, [p];
    st.global.u32 [%a], {number};
    ret;
}}
"""
# Target, and what each file has: s is a cubin, p is PTX.
FILES = {
    "90": "s90a s90",
    "100": "s100a s100",
    "100f": "s100a s100f s100",
    "103": "s103a s100",
    "120": "s120a s120 p120",
    "121": "s121a s120f",
    "110": "s110a s110f",
    "90a": "s90a s90",
}
RELEASES = ["13.0", *(name for name in oracle.others() if name not in oracle.BY_LIBRARY)]
LATER = [name for name in RELEASES if name != "13.0"]


def packed(entries: tuple[str, ...], name: str = "k") -> bytes:
    """A fat binary of these entries of the kernel `name`."""
    images = []
    for number, entry in enumerate(entries):
        ptx = SOURCE.format(arch=entry[1:], tag=f"{entry}_{name}", name=name, number=number)
        if entry[0] == "s":
            images.append(("elf", entry[1:], oracle.assemble(ptx, entry[1:])))
        else:
            images.append(("ptx", entry[1:], ptx.encode()))
    return packed_by_fatbinary(images, "default")


def chosen(image: bytes) -> set[str]:
    return {tag.decode() for tag in re.findall(rb"\0chosen_(\w+)_", image)}


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("arch", FILES)
def test_both_kinds_in_each_order(arch: str, release: str) -> None:
    with oracle.release(release):
        taken = set()
        for order in itertools.permutations(FILES[arch].split()):
            data = packed(order)
            taken |= chosen(check({"f.fatbin": data}, arch))
            taken |= chosen(check({"f.o": host(data)}, arch))
        assert len(taken) == 1
        assert taken.pop().endswith("a") == (release == "13.0" or arch.endswith("a"))


@pytest.mark.parametrize("release", RELEASES)
def test_archives(release: str) -> None:
    with oracle.release(release):
        names = ("k0", "k1")
        members = [(f"{name}.o", host(packed(("s90a", "s90"), name))) for name in names]
        own = host(packed(("s90", "s90a"), "own"))
        files = {"own.o": own, "lib.a": archive_builder.gnu(members)}
        image = check(files, "90")
        assert chosen(image) == {"s90" if release != "13.0" else "s90a"}


@pytest.mark.parametrize("release", LATER)
def test_one_newer_file_decides_for_all(release: str) -> None:
    """Objects of 13.0 beside one of a later release, which the link then follows."""
    old = packed(("s90a", "s90"), "old")
    with oracle.release(release):
        new = oracle.assemble(SOURCE.format(arch="90", tag="s90_new", name="new", number=1), "90")
        for files in ({"old.fatbin": old, "new.cubin": new}, {"n.cubin": new, "o.fatbin": old}):
            assert chosen(check(files, "90")) == {"s90"}


@pytest.mark.parametrize("release", LATER)
@pytest.mark.parametrize(("arch", "entries"), [("90", "s90a p90"), ("100", "s100a p100")])
def test_ptx_beside_code_for_one_chip_is_compiled(arch: str, entries: str, release: str) -> None:
    with oracle.release(release):
        data = packed(tuple(entries.split()))
        compiler = oracle.toolchain().tool("ptxas")
        image = check({"f.fatbin": data}, arch, ptxas_path=compiler)
        assert chosen(image) == {f"p{arch}"}


@pytest.mark.parametrize("release", LATER)
def test_code_for_one_chip_alone_is_not_found(release: str) -> None:
    with oracle.release(release):
        data = packed(("s90a",))
    with pytest.raises(pylink.LinkError, match="No input has code for 'sm_90'"):
        pylink.link([("f.fatbin", data)], arch="sm_90")


def test_a_release_that_is_asked_for_decides() -> None:
    data = packed(("s90a", "s90"))
    files = [("f.fatbin", data)]
    assert chosen(pylink.link(files, arch="sm_90", nvlink_version="13.0").image) == {"s90a"}
    assert chosen(pylink.link(files, arch="sm_90", nvlink_version="13.1").image) == {"s90"}


def test_damaged_code_for_one_chip_is_reported() -> None:
    """The look at what made the code leaves the report of damage to the link."""
    data = bytearray(packed(("s90a", "s90")))
    with pytest.raises(pylink.LinkError, match="damaged"):
        pylink.link([("f.fatbin", bytes(data[:120]) + bytes(len(data) - 120))], arch="sm_90")
