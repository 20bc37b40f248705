"""Remarks of links of compiled programs, held against the linked file and read by LLVM's tools."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from helpers import oracle
from helpers.llvm import opt_viewer, remarkutil
from helpers.remarked import line, remarks_of

import pylink
from pylink.inspect import document
from pylink.inspect.image import Image
from pylink.remarks import Remark
from pylink.remarks.record import TAGS

pytestmark = oracle.needs_oracle

ARCHS = ("80", "90", "100", "120")

SCALE = """
template <int N> __device__ __noinline__ float scale(float x) {
    float s = x;
    for (int i = 0; i < N; ++i) s = s * x + i;
    return s;
}
template __device__ float scale<3>(float);
"""
MAIN = (
    SCALE
    + """
extern __device__ float other(float);
__device__ __noinline__ float unused(float x) { return x * 3.5f; }
__shared__ float common1[32];
__shared__ float common2[16];
extern __device__ int rec(int n);
__device__ __noinline__ int deep(int n) {
    volatile int a[64];
    a[n] = n;
    return a[n - 1];
}
__global__ void k1(float* p) {
    __shared__ float own[20];
    own[threadIdx.x] = p[1];
    common1[threadIdx.x] = own[3];
    __syncthreads();
    p[threadIdx.x] = scale<3>(other(p[0])) + common1[1] + deep(3);
}
__global__ void k2(float* p) {
    common2[threadIdx.x] = p[1];
    __syncthreads();
    p[threadIdx.x] = scale<3>(p[0]) + common2[1] + rec(int(p[2]));
}
"""
)
OTHER = (
    SCALE
    + """
__device__ __noinline__ float other(float x) { return scale<3>(x) + 1; }
__device__ __noinline__ int rec(int n) { return n < 2 ? n : rec(n - 1) + rec(n - 2); }
extern __shared__ float dyn[];
__global__ void k3(float* p) {
    dyn[threadIdx.x] = p[0];
    __syncthreads();
    p[1] = dyn[2];
}
"""
)
SOURCES = {"main": MAIN, "other": OTHER, "scale": SCALE, "again": SCALE}


def cubins(arch: str, *flags: str) -> dict[str, bytes]:
    """The two instances of one source have one name, so that they are equal with line tables."""
    names = {"main": "main.cu", "other": "other.cu", "scale": "scale.cu", "again": "scale.cu"}
    return {
        f"{name}.cubin": oracle.compile(source, arch, flags, name=names[name])
        for name, source in SOURCES.items()
    }


class Program:
    """The remarks of a link and the linked file."""

    def __init__(self, arch: str, *flags: str) -> None:
        self.cubins = cubins(arch, *flags)
        self.remarks = remarks_of(self.cubins, arch)
        inputs = list(self.cubins.items())
        self.image = Image(pylink.link(inputs, arch=f"sm_{arch}").image)

    def named(self, *names: str) -> list[Remark]:
        return [remark for remark in self.remarks if remark.name in names]


def args(remark: Remark) -> dict[str, str]:
    return {key: value for key, value, *_ in remark.args if key != "String"}


@pytest.fixture(params=ARCHS, scope="module")
def program(request: pytest.FixtureRequest) -> Program:
    return Program(request.param, "-lineinfo")


def size_of(image: Image, name: str) -> int:
    section = image.section(name)
    assert section is not None, name
    return section.size


def attributes(image: Image, name: str) -> dict[str, int]:
    """Function -> value of an attribute that .nv.info gives each."""
    tables: Any = document.info(image)
    return {
        row["symbol"]: row["value"]
        for table in tables
        if not table["section"].startswith(".nv.merc")
        for row in table["rows"]
        if row["attribute"] == name
    }


def test_stacks_are_those_of_the_file(program: Program) -> None:
    stacks = attributes(program.image, "EIATTR_MIN_STACK_SIZE")
    told = {remark.function: int(args(remark)["Stack"]) for remark in program.named("KernelStack")}
    assert told.keys() == {"_Z2k1Pf", "_Z2k3Pf"}
    assert told == {name: stacks[name] for name in told}
    (unknown,) = program.named("StackUnknown")
    assert unknown.function == "_Z2k2Pf"
    assert args(unknown)["Cycle"] == "_Z3reci -> _Z3reci"


def test_register_counts_are_those_of_the_file(program: Program) -> None:
    counts = attributes(program.image, "EIATTR_REGCOUNT")
    for remark in program.named("KernelRaised"):
        assert counts[remark.function] == int(args(remark)["Registers"])
        assert args(remark)["Chain"].endswith(args(remark)["Callee"])


def test_shared_memory_has_the_size_of_its_section(program: Program) -> None:
    told = {remark.function: int(args(remark)["Size"]) for remark in program.named("KernelShared")}
    assert len(told) == 3
    for name, size in told.items():
        assert size_of(program.image, f".nv.shared.{name}") == size
    for remark in program.named("VariablePlaced"):
        values = args(remark)
        end = int(values["Offset"]) + int(values["Size"])
        assert end <= told[remark.function]


def test_kept_relocations_fill_their_tables(program: Program) -> None:
    told: Counter[str] = Counter()
    for remark in program.named("RelocationsKept"):
        told[args(remark)["Table"]] += int(args(remark)["Kept"])
    tables = {
        section.name: section.size // section.entsize
        for section in program.image.sections
        if section.name.startswith((".rel", ".nv.merc.rela."))
        and section.size
        and not section.name.startswith(".nv.rel")
    }
    assert told == tables


def test_every_relocation_of_live_code_is_applied_or_kept(program: Program) -> None:
    told: Counter[str] = Counter()
    for remark in program.named("RelocationsKept", "RelocationsApplied"):
        if remark.function.startswith(".text."):
            told[remark.function] += int(args(remark).get("Kept") or args(remark)["Applied"])
    wanted: Counter[str] = Counter()
    for name in ("main.cubin", "other.cubin"):
        for section in Image(program.cubins[name]).sections:
            for prefix in (".rel.text", ".rela.text"):
                if section.name.startswith(prefix + "."):
                    function = section.name.removeprefix(prefix)
                    wanted[f".text{function}"] += section.size // section.entsize
    assert told == wanted


def test_debug_sections_have_the_bytes_told(program: Program) -> None:
    pieces: defaultdict[str, int] = defaultdict(int)
    for remark in program.named("DebugPiece"):
        pieces[remark.function] += int(args(remark)["Bytes"])
    sections = program.named("DebugSection")
    debug = [s for s in program.image.sections if "debug_" in s.name and ".rel" not in s.name]
    assert {remark.function for remark in sections} == {section.name for section in debug}
    for remark in sections:
        values = args(remark)
        assert size_of(program.image, remark.function) == int(values["OutputBytes"])
        assert pieces[remark.function] == int(values["InputBytes"])


def test_removed_functions_are_not_in_the_file(program: Program) -> None:
    names = {section.name for section in program.image.sections}
    removed = [remark.function for remark in program.named("FunctionRemoved")]
    assert removed == ["_Z6unusedf"]
    assert ".text._Z6unusedf" not in names


def test_weak_copies_and_places_in_the_source(program: Program) -> None:
    told = program.named("WeakKept", "WeakReplaced")
    assert len(told) == 3
    assert {remark.function for remark in told} == {"_Z5scaleILi3EEff"}
    assert [Path(remark.file or "").name for remark in told] == ["other.cu", "scale.cu", "scale.cu"]
    assert {remark.line for remark in told} <= {3, 4, 5}


@pytest.mark.parametrize("arch", ["100", "120"])
@pytest.mark.parametrize("flags", [(), ("-lineinfo",), ("-G",)], ids=["plain", "lineinfo", "G"])
def test_folds_are_those_of_the_dedup_report(
    arch: str, flags: tuple[str, ...], tmp_path: Path
) -> None:
    made = cubins(arch, *flags)
    remarks = remarks_of(made, arch, "merc-dedup")
    for name, data in made.items():
        (tmp_path / name).write_bytes(data)
    command = [sys.executable, "-m", "pylink", "dedup", "--json", *made]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    rejected = {
        args(remark)["File"]: (
            args(remark)["Reference"],
            int(args(remark)["Stage"]),
            int(args(remark)["Code"]),
            args(remark)["Difference"],
        )
        for remark in remarks
        if remark.name == "SectionRejected"
    }
    assert rejected == {
        row["object"]: (row["compared_with"], row["stage"], row["code"], row["reason"])
        for row in report["objects"]
        if row["code"]
    }
    (cost,) = [remark for remark in remarks if remark.name == "Cost"]
    assert args(cost)["Pairs"] == str(report["stats"]["pairs"])

    folded = [remark for remark in remarks if remark.name == "SectionFolded"]
    assert {remark.file for remark in folded} <= {"again.cubin"}
    saved: Counter[str] = Counter()
    for remark in folded:
        assert args(remark)["Reference"] == "scale.cubin"
        assert remark.hotness == int(args(remark)["BytesSaved"])
        saved[remark.function] += int(args(remark)["BytesSaved"])
    inputs = list(made.items())
    with_all = Image(pylink.link(inputs, arch=f"sm_{arch}", merc_dedup="off").image)
    without = Image(pylink.link(inputs, arch=f"sm_{arch}").image)
    assert saved == {
        section.name: section.size - size_of(without, section.name)
        for section in with_all.sections
        if section.name.startswith(".nv.merc.")
        and "rela" not in section.name
        and section.size != size_of(without, section.name)
    }
    if flags:
        assert folded


def test_remarks_change_no_byte(program: Program, tmp_path: Path) -> None:
    inputs = list(program.cubins.items())
    arch = f"sm_{program.image.sm}"
    plain = pylink.link(inputs, arch=arch).image
    told = pylink.link(inputs, arch=arch, pass_remarks_output=str(tmp_path / "r.yaml")).image
    assert told == plain


# --- LLVM's tools -------------------------------------------------------------------------------


def write_remarks(folder: Path, *options: str) -> Path:
    """Link the program in `folder`, with inputs of relative names; the file of remarks."""
    for name, source in SOURCES.items():
        (folder / f"{name}.cu").write_text(source)
        nvcc = oracle.toolchain().tool("nvcc")
        command = [nvcc, "-rdc=true", "-cubin", "-arch=sm_100", "-lineinfo", f"{name}.cu"]
        subprocess.run([*command, "-o", f"{name}.cubin"], cwd=folder, check=True)
    link(folder, *options)
    return folder / "remarks"


def link(folder: Path, *options: str) -> None:
    names = [f"{name}.cubin" for name in SOURCES]
    command = [sys.executable, "-m", "pylink", "-arch=sm_100", *names, "-o", "out.cubin"]
    options = (*options, "--pass-remarks-with-hotness", "--pass-remarks-output=remarks")
    subprocess.run([*command, *options], cwd=folder, check=True, stderr=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("remarks")
    write_remarks(made)
    return made


def test_llvm_counts_what_the_link_told(folder: Path) -> None:
    inputs = {f"{name}.cubin": (folder / f"{name}.cubin").read_bytes() for name in SOURCES}
    remarks = remarks_of(inputs, "100")
    by_function = Counter(remark.function for remark in remarks)
    saved: Counter[str] = Counter()
    for remark in remarks:
        saved[remark.function] += int(args(remark).get("Kept", 0))
    for version, release, options in (
        ("yaml", "19", ()),
        ("yaml", "22", ()),
        ("bitstream", "19", ("--pass-remarks-bitstream-version=0",)),
        ("bitstream", "22", ("--pass-remarks-bitstream-version=1",)),
    ):
        tool = remarkutil(release)
        link(folder, f"--pass-remarks-format={version}", *options)
        words = ["count", f"--parser={version}", "--group-by=function"]
        assert tool(*words, "remarks", folder=folder) == by_function
        words += ["--count-by=arg", "--args=Kept"]
        assert tool(*words, "remarks", folder=folder) == saved


def test_opt_viewer_shows_functions_at_their_source_lines(folder: Path) -> None:
    viewer = opt_viewer()
    passes = "symbol-resolution|dce|regcount|stack-size|shared-layout"
    link(folder, f"--pass-remarks-filter={passes}")
    viewer("remarks", folder=folder)
    pages = {path.name: path.read_text() for path in (folder / "html").glob("*.html")}
    page = next(text for name, text in pages.items() if name.endswith("_main.cu.html"))
    assert "removed _Z6unusedf" in page
    assert "shared memory" in page
    assert "unused(float)" in pages["index.html"]


def test_opt_viewer_lists_all_passes_where_it_finds_no_cubin(folder: Path) -> None:
    viewer = opt_viewer()
    link(folder)
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    viewer("../remarks", folder=elsewhere)
    index = (elsewhere / "html/index.html").read_text()
    for name in ("merc-dedup", "debug", "relocate", "dce"):
        assert f">{name}<" in index
    assert "scale.cubin:0:0" in index


def test_lines_are_exact_for_a_known_program() -> None:
    remarks = remarks_of({"main.cubin": oracle.compile(SCALE, "80")}, "80", "dce")
    assert [line(remark) for remark in remarks] == [
        "Passed FunctionRemoved _Z5scaleILi3EEff main.cubin:0:0 256 | removed _Z5scaleILi3EEff, "
        "256 bytes of code: no kernel reaches it"
    ]
    assert TAGS[remarks[0].kind] == "Passed"
