"""Variables that hold addresses, whole and in parts, up to the last byte of their section."""

from __future__ import annotations

import pytest
from helpers import oracle
from helpers.compare import compare
from helpers.keywords import keywords

import pylink

pytestmark = oracle.needs_oracle

HEAD = """.version 9.0
.target sm_{target}
.address_size 64
.visible .func function() {{ ret; }}
.visible .global .u32 variable[4];
.visible .const .u32 constant[4] = {{1}};
.visible .entry kernel(.param .u64 p) {{ ret; }}
"""
# Each byte of an address by its mask, single ones, the whole of it, and its low half.
BYTES = "{" + ", ".join("0xff" + "00" * byte + "(at)" for byte in range(8)) + "}"
FORMS = (
    f".align 1 .u8 a[8] = {BYTES}",
    ".align 1 .u8 a[1] = {0xff(at)}",
    ".align 1 .u8 a[1] = {0xff000000(at)}",
    ".u64 a = at",
    ".u32 a = at",
)
TARGETS = ("function", "variable", "generic(variable)", "variable+4", "constant", "kernel")


@pytest.mark.parametrize("options", [[], ["-r"]], ids=" ".join)
@pytest.mark.parametrize("at", TARGETS)
@pytest.mark.parametrize("space", ["global", "const"])
@pytest.mark.parametrize("arch", ["80", "90", "100", "120"])
@pytest.mark.parametrize("release", [oracle.DEFAULT, *oracle.others()[-1:]])
def test_addresses(release: str, arch: str, space: str, at: str, options: list[str]) -> None:
    for form in FORMS:
        if (space, at) == ("global", "constant") and ".u32" in form:
            continue  # nvlink 13.5 writes the other half over what follows
        text = HEAD.format(target=oracle.PTX_ARCH[arch])
        text += f".visible .{space} {form.replace('at', at)};\n"
        with oracle.release(release):
            cubin = oracle.assemble(text, arch)
            theirs = oracle.link([cubin], arch, options)
        assert theirs.image is not None, theirs.stderr
        chosen = {**keywords(options), "merc_dedup": "off", "nvlink_version": release}
        image = pylink.link([("m0.cubin", cubin)], arch=f"sm_{arch}", **chosen).image
        assert compare(bytes(image), theirs.image) == [], form


def test_the_low_half_of_an_address_does_not_reach_further() -> None:
    """As from the first file, whose last variable has four bytes; one of the second follows."""
    first = HEAD.format(target="80") + ".visible .global .u32 a = constant;\n"
    second = ".version 9.0\n.target sm_80\n.address_size 64\n.visible .global .u32 b = 5;\n"
    cubins = [oracle.assemble(text, "80") for text in (first, second)]
    inputs = [(f"m{number}.cubin", cubin) for number, cubin in enumerate(cubins)]
    theirs = oracle.link(cubins, "80")
    assert theirs.image is not None
    assert compare(bytes(pylink.link(inputs, arch="sm_80").image), theirs.image) == []
