"""A weak kernel of one file and a strong one of the same name in another, as PTX can have them."""

from __future__ import annotations

import pytest
from helpers import oracle
from helpers.compare import compare

import pylink
from pylink.inspect.image import Image

KERNEL = """.version 9.0
.target sm_{arch}
.address_size 64
{linkage} .entry kernel(.param .u64 p)
{{
    .reg .b64 %a;
    ld.param.u64 %a, [p];
    st.global.u32 [%a], {value};
    {more}
    ret;
}}
"""


def cubin(arch: str, linkage: str) -> bytes:
    value, more = (2, "st.global.u32 [%a+8], 3;") if linkage == ".visible" else (1, "")
    return oracle.assemble(KERNEL.format(arch=arch, linkage=linkage, value=value, more=more), arch)


def bank(image: bytes) -> bytes:
    """The kernel's parameters and what stands in front of them."""
    (section,) = (
        candidate for candidate in Image(image).sections if candidate.name == ".nv.constant0.kernel"
    )
    return image[section.offset :][: section.size]


@pytest.mark.parametrize("linkages", [(".weak", ".visible"), (".visible", ".weak")], ids="".join)
@pytest.mark.parametrize("arch", ["80", "90"])
@oracle.needs_oracle
def test_the_bank_of_the_copy_that_lost_is_left_out(arch: str, linkages: tuple[str, str]) -> None:
    """nvlink puts it behind the other one, where no code reads it. All else is equal."""
    cubins = [cubin(arch, linkage) for linkage in linkages]
    theirs = oracle.link(cubins, arch).image
    assert theirs is not None
    inputs = [(f"m{number}.cubin", data) for number, data in enumerate(cubins)]
    ours = pylink.link(inputs, arch=f"sm_{arch}").image
    alone = pylink.link([("m.cubin", cubin(arch, ".visible"))], arch=f"sm_{arch}").image
    assert bank(ours) == bank(alone)
    assert bank(theirs) == 2 * bank(alone)
    (difference,) = compare(ours, theirs)
    assert difference.startswith("bytes .nv.constant0.kernel")


@oracle.needs_oracle
def test_from_sm_100_on_it_has_one_bank() -> None:
    cubins = [cubin("100", linkage) for linkage in (".visible", ".weak")]
    theirs = oracle.link(cubins, "100").image
    assert theirs is not None
    inputs = [(f"m{number}.cubin", data) for number, data in enumerate(cubins)]
    ours = pylink.link(inputs, arch="sm_100", merc_dedup="off").image
    assert compare(ours, theirs) == []
