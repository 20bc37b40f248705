"""Links that select kernels: equal constants of several files, which nvlink up to 13.4 folds."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from helpers import oracle
from helpers.side_by_side import OURS, THEIRS, nvlink, output_differences, pylink

from pylink.inspect.image import Image

SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 33)  # words; some fold, some do not


def ptx(number: int, words: int, first: int) -> str:
    """A kernel and the constants that it reads."""
    values = ", ".join(str(first + word) for word in range(words))
    return f""".version 9.0
.target sm_80
.address_size 64
.visible .const .align 4 .u32 c{number}[{words}] = {{{values}}};
.visible .entry k{number}(.param .u64 p)
{{
    .reg .b64 %a;
    .reg .b32 %v;
    ld.param.u64 %a, [p];
    ld.const.u32 %v, [c{number}];
    st.global.u32 [%a], %v;
    ret;
}}
"""


SOURCE = """
__constant__ int c{number}[5] = {{{first}, 2, 3, 4, 5}};
__global__ void k{number}(int *p, int n) {{ p[0] = c{number}[n]; }}
int main{number}(int *p) {{ k{number}<<<1, 1>>>(p, 1); return 0; }}
"""


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("arch", ["80", "90", "100"])
@pytest.mark.parametrize("release", [oracle.DEFAULT, *oracle.others()])
@oracle.needs_oracle
def test_constants_of_selected_kernels(tmp_path: Path, release: str, arch: str, seed: int) -> None:
    rng = Random(seed)
    names, kernels = [], []
    with oracle.release(release):
        for number in range(rng.randint(2, 4)):
            names.append(f"{number}.cubin")
            kernels.append(f"k{number}")
            text = ptx(number, rng.choice(SIZES), rng.randint(1, 2))
            (tmp_path / names[-1]).write_bytes(oracle.assemble(text, arch))
        words = [f"-arch=sm_{arch}", f"--kernels-used={','.join(kernels)}", *names]
        assert output_differences(tmp_path, words) == []


@pytest.mark.parametrize("second", [1, 2])
@pytest.mark.parametrize("release", [oracle.DEFAULT, *oracle.others()])
@oracle.needs_oracle
def test_constants_of_kernels_that_host_code_names(
    tmp_path: Path, release: str, second: int
) -> None:
    with oracle.release(release):
        for number, first in enumerate((1, second)):
            text = SOURCE.format(number=number, first=first)
            (tmp_path / f"{number}.o").write_bytes(oracle.compile_host(text, "90"))
        assert output_differences(tmp_path, ["-arch=sm_90", "-use-host-info", "0.o", "1.o"]) == []


TABLE = """.version 9.0
.target sm_{target}
.address_size 64
.extern .const .align 8 .b64 other[9];
.visible .global .align 8 .b64 v{number}[2];
.visible .const .align 8 .u64 c{number}[{count}] = {{{entries}}};
.visible .entry k{number}(.param .u64 p)
{{
    .reg .b64 %a, %v;
    ld.param.u64 %a, [p];
    ld.const.u64 %v, [c{number}];
    st.global.u64 [%a], %v;
    ret;
}}
"""
OTHER = """.version 9.0
.target sm_{target}
.address_size 64
.visible .const .align 8 .b64 other[9] = {{1, 2, 3}};
"""


@pytest.mark.parametrize("entry", ["v{number}", "other"])
@pytest.mark.parametrize("arch", ["80", "90", "100"])
@oracle.needs_oracle
def test_tables_of_addresses_are_not_equal(tmp_path: Path, arch: str, entry: str) -> None:
    """nvlink takes them for equal: it has no bytes for the last ones, and refuses the program.

    Entries stay, or are written by the link; two of the tables have the size of each other.
    """
    names = []
    for number, count in enumerate((2, 2, 3)):
        at = entry.format(number=number)
        text = TABLE.format(
            target=oracle.PTX_ARCH[arch],
            number=number,
            count=count,
            entries=", ".join([at] * count),
        )
        names.append(f"{number}.cubin")
        (tmp_path / names[-1]).write_bytes(oracle.assemble(text, arch))
    text = OTHER.format(target=oracle.PTX_ARCH[arch])
    (tmp_path / "other.cubin").write_bytes(oracle.assemble(text, arch))
    words = [f"-arch=sm_{arch}", "other.cubin", *names]
    theirs = nvlink(tmp_path, [*words, "--kernels-used=k"])
    assert theirs.code == 1
    assert theirs.lines[0].startswith("fatal   : Internal error: reloc")
    assert nvlink(tmp_path, words).code == 0
    assert pylink(tmp_path, [*words, "--kernels-used=k"]).code == 0
    assert bank(tmp_path / OURS) == bank(tmp_path / THEIRS)


def bank(file: Path) -> tuple[bytes, list[int]]:
    """The constants of an executable, and where entries of tables stay to be filled in."""
    image = Image(file.read_bytes())
    section = image.section(".nv.constant3")
    assert section is not None
    places = []
    for name, form in ((".rel.nv.constant3", "<QQ"), (".rela.nv.constant3", "<QQq")):
        if (entries := image.section(name)) is not None:
            places += [offset for offset, *_ in image.entries(entries, form)]
    return image.content(section), sorted(places)
