"""Tables of addresses in files that bring further copies of the tables or their entries."""

from __future__ import annotations

import itertools

import pytest
from helpers import oracle
from helpers.copies_ptx import FEW, MANY, file
from helpers.side_by_side import differences

pytestmark = [oracle.needs_oracle, pytest.mark.parametrize("arch", ["75", "90a", "100"])]


LINKAGES = [("weak", "weak"), ("weak", "visible"), ("visible", "weak"), ("weak", "weak", "visible")]


@pytest.mark.parametrize("options", [[], ["-r"]], ids=str)
@pytest.mark.parametrize("linkages", LINKAGES, ids="-".join)
@pytest.mark.parametrize("space", ["const", "global"])
def test_tables_with_several_definitions(
    arch: str, space: str, linkages: tuple[str, ...], options: list[str]
) -> None:
    """Entries in bytes that no symbol has, and entries that name copies that lost."""
    winner = linkages.index("visible") if "visible" in linkages else 0
    for sizes in itertools.product((FEW, MANY), repeat=len(linkages)):
        cubins = []
        for mark, (linkage, values) in enumerate(zip(linkages, sizes, strict=True)):
            shared = "f, v" if space == "global" or mark == 0 or mark != winner else f"own{mark}, 0"
            tables = {
                f"visible first{mark}": f"own{mark}",
                f"{linkage} table": f"{shared}, own{mark}",
                f"visible last{mark}": f"own{mark}",
            }
            cubins.append(file(arch, mark, values, space, tables))
        assert differences(cubins, arch, options) == [], sizes


def test_a_constant_table_keeps_entries_of_copies_that_lost(arch: str) -> None:
    """nvlink leaves them out: the table of the second file holds null pointers."""
    cubins = [file(arch, m, FEW, "const", {f"visible table{m}": f"f, v, own{m}"}) for m in (1, 2)]
    place = ".rel.nv.constant3" if arch == "75" else ".rela.nv.constant3"
    form = "UNIFIED" if arch != "75" else "64"
    for options, function in ([], "64"), (["-r"], form):
        found = [line for line in differences(cubins, arch, options) if ".merc." not in line]
        assert found == [
            f"relocation {place}[0]: got 0x18 R_CUDA_{function} f; expected nothing",
            f"relocation {place}[1]: got 0x20 R_CUDA_G64 v; expected nothing",
        ]
