"""Links as by nvlink 12.9: what its nvJitLink makes of objects of 12.9 and older.

The library has neither -r nor --preserve-relocs. Relocatable outputs of pylink are second-stage
inputs of both. It needs what `scripts/install_oracle.py 12.9` installs; recorded links of the
library are in tests/golden.
"""

from __future__ import annotations

import functools
import struct
from pathlib import Path

import pytest
from differential import cases, check
from helpers import library_link, older, oracle, programs
from helpers.compare import compare
from helpers.keywords import keywords

import pylink
from pylink.facts.attributes import EIATTR, NVAL
from pylink.facts.elf import STT_FUNC
from pylink.inspect.image import Image

RELEASES = oracle.by_library()
ARCHS = ("75", "80", "86", "89", "90", "90a", "100", "120")
LINKS = [
    *((seed, arch, kind) for seed in (3, 8) for arch in ARCHS for kind in ("exec", "g")),
    *((12, arch, kind) for arch in ("80", "90a", "100") for kind in ("order", "kernels-used")),
    *((seed, arch, "exec") for seed in (0, 5) for arch in ("75", "90", "120")),
]
pytestmark = pytest.mark.parametrize("release", RELEASES)

HEAD = ".version 8.8\n.target sm_{arch}\n.address_size 64\n"
E_FLAGS = slice(48, 52)
(PRE_V10,) = [number for number, name in EIATTR.items() if name == "HAS_PRE_V10_OBJECT"]


@functools.cache
def program(seed: int) -> programs.Program:
    return programs.generate(seed)


def both(
    release: str, ptx: list[str], arch: str, folder: Path, *options: str, made_by: str = ""
) -> tuple[bytes, bytes]:
    """What pylink and the library make of PTX texts."""
    inputs = []
    with oracle.release(release):
        for number, text in enumerate(ptx):
            path = folder / f"{number}.cubin"
            source = HEAD.format(arch=arch.rstrip("af")) + text
            path.write_bytes(older.assemble(source, arch, (), made_by or release))
            inputs.append(path.name)
        theirs = run_library(inputs, arch, folder, *options)
    return link(folder, inputs, arch, *options), theirs


def run_library(inputs: list[str], arch: str, folder: Path, *options: str) -> bytes:
    argv = [f"-arch=sm_{arch}", *options, *inputs, "-o", "library.out"]
    result = oracle.run_nvlink(argv, folder, "library.out")
    assert result.image is not None, result.stderr
    return result.image


def link(folder: Path, inputs: list[str], arch: str, *options: str) -> bytes:
    files = [pylink.Input((folder / name).read_bytes(), name=name) for name in inputs]
    words = {"nvlink_version": "12.9", **keywords(options)}
    return bytes(pylink.link(files, arch=f"sm_{arch}", **words).image)


def entry(name: str, *body: str) -> str:
    return f".visible .entry {name}(.param .u64 p) {{ {' '.join(body)} ret; }}\n"


def function(name: str, *body: str) -> str:
    return f".visible .func {name}() {{ {' '.join(body)} ret; }}\n"


def call(name: str) -> str:
    return f"{{ call {name}; }}"


@pytest.mark.parametrize(("seed", "arch", "kind"), LINKS)
def test_a_link_is_that_of_the_library(
    release: str, seed: int, arch: str, kind: str, tmp_path: Path
) -> None:
    with oracle.release(release):
        try:
            case = cases.prepare(program(seed), arch, [kind], tmp_path)
        except older.CannotAssemble:
            pytest.fail("choose a program that ptxas of the release takes")
        (expected,) = case.links
        assert check.check_api(case, expected) == []


@pytest.mark.parametrize("arch", ["80", "90"])
@pytest.mark.parametrize("own", [None, 1, 6])
@pytest.mark.parametrize("others", [(), ("alone",)])
def test_kernels_have_the_largest_number_of_barriers_that_they_reach(
    release: str, arch: str, own: int | None, others: tuple[str, ...], tmp_path: Path
) -> None:
    wait = "" if own is None else f"bar.sync {own};"
    files = [
        ".extern .func f();\n" + entry("k", wait, call("f")) + "".join(map(entry, others)),
        function("g", "bar.sync 4;") + function("f", "bar.sync 2;", call("g")),
    ]
    ours, theirs = both(release, files, arch, tmp_path)
    assert compare(ours, theirs) == []
    flags = {row.name: row.flags for row in Image(ours).sections}
    assert flags[".text.k"] >> 20 == max(5, 0 if own is None else own + 1)


@pytest.mark.parametrize("arch", ["80", "90a", "100"])
def test_a_function_that_its_first_file_lacks_makes_the_null_symbol_a_function(
    release: str, arch: str, tmp_path: Path
) -> None:
    files = [
        ".extern .func f();\n.extern .func g();\n" + entry("k", call("f")) + entry("l", call("g")),
        ".extern .func f();\n" + entry("m", call("f")),
        ".extern .func h();\n" + entry("n", call("h")),
        function("f") + function("g") + function("h"),
    ]
    ours, theirs = both(release, files, arch, tmp_path, "-g")
    assert compare(ours, theirs) == []
    image = Image(ours)
    table = image.section(".symtab")
    assert table is not None
    # st_name, st_info, st_other, st_shndx and so on.
    rows = image.entries(table, "<IBBHQQ")[1:]
    assert [row[1] for row in rows if image.string(row[0]) == ""].count(STT_FUNC) == 2


@pytest.mark.parametrize(("arch", "older_sm"), [("80", 75), ("90a", 80), ("100", 75)])
@pytest.mark.parametrize("older_first", [True, False])
def test_the_virtual_architecture_is_the_lowest_and_from_sm_100_on_the_last(
    release: str, arch: str, older_sm: int, older_first: bool, tmp_path: Path
) -> None:
    texts = [
        HEAD.format(arch=arch.rstrip("a")) + entry("a"),
        HEAD.format(arch=older_sm) + entry("b"),
    ]
    for number, text in enumerate(reversed(texts) if older_first else texts):
        (tmp_path / f"{number}.cubin").write_bytes(older.assemble(text, arch, (), release))
    inputs = ["0.cubin", "1.cubin"]
    with oracle.release(release):
        theirs = run_library(inputs, arch, tmp_path)
    ours = link(tmp_path, inputs, arch)
    assert compare(ours, theirs) == []
    if arch != "100":
        assert struct.unpack("<I", ours[E_FLAGS])[0] >> 16 == older_sm


@pytest.mark.parametrize("arch", ["80", "90a", "100", "120"])
@pytest.mark.parametrize("seed", [3, 12])
@pytest.mark.parametrize("options", [(), ("-g",)])
def test_the_library_takes_relocatable_outputs(
    release: str, arch: str, seed: int, options: tuple[str, ...], tmp_path: Path
) -> None:
    with oracle.release(release):
        names = cases.compile_modules(program(seed).modules, arch, tmp_path)
        (tmp_path / "stage.cubin").write_bytes(link(tmp_path, names, arch, "-r", *options))
        theirs = run_library(["stage.cubin"], arch, tmp_path, *options)
    assert compare(link(tmp_path, ["stage.cubin"], arch, *options), theirs) == []


def test_the_library_takes_objects_of_13_0_for_very_old_ones(release: str, tmp_path: Path) -> None:
    """Why pylink refuses them: the output says that it has code from before CUDA 10."""
    (tmp_path / "new.cubin").write_bytes(oracle.compile("__global__ void k() {}", "80"))
    with oracle.release(release):
        theirs = run_library(["new.cubin"], "80", tmp_path)
    (info,) = [row for row in Image(theirs).sections if row.name == ".nv.info"]
    records = Image(theirs).content(info)
    assert bytes((NVAL, PRE_V10, 0, 0)) in records
    with pytest.raises(pylink.LinkError, match=r"newer than toolkit \(130 vs 129\)"):
        link(tmp_path, ["new.cubin"], "80")


def test_an_option_that_the_library_lacks_is_told_apart(release: str, tmp_path: Path) -> None:
    (tmp_path / "k.cubin").write_bytes(
        older.assemble(HEAD.format(arch=80) + entry("k"), "80", (), release)
    )
    with (
        oracle.release(release),
        pytest.raises(oracle.NotLinkable, match=library_link.UNKNOWN_OPTION),
    ):
        oracle.run_nvlink(["-arch=sm_80", "-r", "k.cubin", "-o", "out"], tmp_path)


CHAIN = """
__device__ __noinline__ double divided(double a, double b) { return a / b + sqrt(b); }
__global__ void chain(double *o) { o[0] = o[1] * o[2] + divided(o[3], o[4]); }
"""


@pytest.mark.parametrize("arch", ["101", "101a", "101f"])
@oracle.needs_oracle
def test_the_chip_that_cuda_12_called_otherwise(release: str, arch: str) -> None:
    """sm_101 of CUDA 12.9 is sm_110 of 13.0, and no sibling of sm_103."""
    cubin = older.assemble(oracle.compile_ptx(CHAIN, "100"), arch, (), release)
    theirs = oracle.link([cubin], "110")
    assert theirs.image is not None, theirs
    ours = pylink.link([("m.cubin", cubin)], arch="sm_110", merc_dedup="off")
    assert compare(ours.image, theirs.image) == []
    refusal = "arch does not match target 'sm_103'"
    assert refusal in oracle.link([cubin], "103").stderr
    with pytest.raises(pylink.LinkError, match=refusal):
        pylink.link([("m.cubin", cubin)], arch="sm_103")
