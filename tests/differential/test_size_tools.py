"""`pylink size` beside the tools of the toolkit: what they make has the bytes that it says."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers import oracle
from helpers.hostlink import contents, needs_host_compiler, nvcc, run
from helpers.sized import linked

from pylink._native.elfheaders import read_sections
from pylink.prune.command import main as prune
from pylink.size import measure
from pylink.size.cuts import is_debug
from pylink.size.experiments import Experiments
from pylink.size.recompress import zstd_bytes
from pylink.size.reductions import reductions

pytestmark = oracle.needs_oracle

OBJCOPY = shutil.which("llvm-objcopy-22")

SOURCE = """
template<int N> __device__ float step(float x) {{ return x * N + {0}.f; }}
__global__ void k{0}(float* p) {{
  float x = p[threadIdx.x];
{1}
  p[threadIdx.x] = x;
}}
"""


def tool(name: str) -> str:
    found = oracle.optional_tool(name)
    assert found is not None, f"{name} is not installed"
    return found


def cubins(folder: Path) -> dict[str, Path]:
    """A cubin for each of three targets, of different sizes."""
    made = {}
    for number, arch in enumerate(("sm_80", "sm_90", "sm_120")):
        body = "\n".join(f"  x = step<{i}>(x) + p[{i}];" for i in range(20 * (number + 1)))
        made[arch] = folder / f"{arch}.cubin"
        made[arch].write_bytes(
            oracle.compile(SOURCE.format(number, body), arch.removeprefix("sm_"))
        )
    return made


def fatbin(folder: Path, files: dict[str, Path], *options: str) -> Path:
    made = folder / "made.fatbin"
    images = [
        f"--image3=kind=elf,sm={arch.removeprefix('sm_')},file={path}"
        for arch, path in files.items()
    ]
    command = [tool("fatbinary"), "-64", *options, f"--create={made}", *images]
    subprocess.run(command, check=True, capture_output=True)
    return made


@pytest.mark.parametrize("mode", ["none", "speed", "default", "balance", "size"])
def test_entries_are_those_that_the_tools_made_and_list(mode: str, tmp_path: Path) -> None:
    files = cubins(tmp_path)
    made = fatbin(tmp_path, files, "--compress-all", f"--compress-mode={mode}")
    sizes = measure([str(made)])
    entries = [leaf for leaf in sizes.leaves if leaf.target]
    assert {leaf.target: leaf.unpacked for leaf in entries} == {
        arch: path.stat().st_size + (-path.stat().st_size % 8 if mode == "none" else 0)
        for arch, path in files.items()
    }
    assert sum(leaf.installed for leaf in sizes.leaves) == made.stat().st_size
    listed = subprocess.run(
        [tool("cuobjdump"), "-lelf", made], check=True, capture_output=True, text=True
    ).stdout
    assert sorted(re.findall(r"sm_\d+", listed)) == sorted(leaf.target for leaf in entries)


def test_the_mode_that_is_advised_makes_the_bytes_that_are_said(tmp_path: Path) -> None:
    for arch, path in cubins(tmp_path).items():
        options = "--compress-all", "--compress-mode=default"
        sizes = measure([str(fatbin(tmp_path, {arch: path}, *options))])
        (leaf,) = [leaf for leaf in sizes.leaves if leaf.target]
        payload = path.read_bytes()
        measured = zstd_bytes(payload, 0, len(payload), deflate=False)
        assert measured is not None
        assert measured[0] == leaf.installed - leaf.header


# What a rule advises, and the modes of the same entries before and after it was done.
DONE = {
    "stored-cubins": ("none", "default"),
    "lz4-cubins": ("speed", "default"),
    "size-mode": ("default", "size"),
}


@pytest.mark.parametrize("rule", DONE)
def test_compressing_as_advised_saves_what_is_said(rule: str, tmp_path: Path) -> None:
    files = cubins(tmp_path)
    before, after = (
        fatbin(tmp_path, files, "--compress-all", f"--compress-mode={mode}").read_bytes()
        for mode in DONE[rule]
    )
    path = tmp_path / "before.fatbin"
    path.write_bytes(before)
    assert saved(path, rule) == len(before) - len(after)


def test_leaving_out_ptx_as_advised_saves_what_is_said(tmp_path: Path) -> None:
    """PTX for 9.0 stands beside code for that, and the next PTX is for 10.0."""
    files = {"sm_90": tmp_path / "sm_90.cubin"}
    files["sm_90"].write_bytes(linked(90))  # PTX beside relocatable code is for other links
    text = {}
    for arch in ("90", "100"):
        text[arch] = tmp_path / f"compute_{arch}.ptx"
        head = f".version 9.0\n.target sm_{arch}\n.address_size 64\n"
        text[arch].write_text(head + ".visible .entry k() { ret; }\n")
    made = []
    for archs in (("90", "100"), ("100",)):
        images = [f"--image3=kind=ptx,sm={arch},file={text[arch]}" for arch in archs]
        made.append(fatbin(tmp_path, files, *images).read_bytes())
    path = tmp_path / "before.fatbin"
    path.write_bytes(made[0])
    assert saved(path, "unreached-ptx") == len(made[0]) - len(made[1])


def kernel(folder: Path, *, steps: int = 20) -> Path:
    """A source with one kernel."""
    body = "\n".join(f"  x = step<{i}>(x) + p[{i}];" for i in range(steps))
    path = folder / "kernel.cu"
    path.write_text(SOURCE.format(0, body))
    return path


@pytest.mark.parametrize("kept", [("86",), ("80", "86"), ("75", "86", "90")])
def test_leaving_out_the_target_of_a_twin_saves_what_is_said(
    kept: tuple[str, ...], tmp_path: Path
) -> None:
    """nvcc without `code=sm_89`, whose code is that for sm_86."""
    kernel(tmp_path)
    sizes = {}
    for name, archs in (("before", (*kept, "89")), ("after", kept)):
        words = [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in archs]
        nvcc(tmp_path, *words, "-fatbin", "kernel.cu", "-o", f"{name}.fatbin")
        sizes[name] = (tmp_path / f"{name}.fatbin").stat().st_size
    assert saved(tmp_path / "before.fatbin", "twins") == sizes["before"] - sizes["after"]


UNITS = {
    "use.cu": """
extern __device__ int three(int);
__global__ void use(int *p) { *p = three(*p); }
void launch_use(int *p) { use<<<1, 1>>>(p); }
""",
    "three.cu": """
__device__ int three(int x) { return x * 3; }
__global__ void add(int *p) { *p += three(*p); }
void launch_add(int *p) { add<<<1, 1>>>(p); }
""",
}


@needs_host_compiler
@pytest.mark.parametrize("archs", [("90",), ("80", "90")])
def test_objects_without_linked_copies_save_what_is_said(
    archs: tuple[str, ...], tmp_path: Path
) -> None:
    """The device link as it is, then the host's link with objects that nvcc made of PTX alone."""
    for name, text in UNITS.items():
        (tmp_path / name).write_text(text)
    objects = [name.replace(".cu", ".o") for name in UNITS]
    last = archs[-1]
    bytes_of = {}
    for name in ("before", "after"):
        words = [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in archs]
        if name == "before":
            words[-1] = f"-gencode=arch=compute_{last},code=[sm_{last},compute_{last}]"
        else:
            words = [f"-gencode=arch=compute_{last},code=compute_{last}"]
        for source, made in zip(UNITS, objects, strict=True):
            nvcc(tmp_path, "-rdc=true", "-Xcompiler=-fPIC", *words, "-c", source, "-o", made)
        if name == "before":
            links = [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in archs]
            nvcc(tmp_path, "-dlink", "-shared", *links, *objects, "-o", "linked.o")
        run(tmp_path, "g++", "-shared", *objects, "linked.o", "-o", f"{name}.so")
        bytes_of[name] = {
            section: len(contents(tmp_path, f"{name}.so", section))
            for section in ("__nv_relfatbin", ".nv_fatbin")
        }
    assert bytes_of["before"][".nv_fatbin"] == bytes_of["after"][".nv_fatbin"]
    gone = bytes_of["before"]["__nv_relfatbin"] - bytes_of["after"]["__nv_relfatbin"]
    assert saved(tmp_path / "before.so", "linked-copies") == gone > 0


def sections_of(path: Path) -> dict[bytes, bytes]:
    """Contents of the sections of a cubin that run, by name."""
    data = path.read_bytes()
    sections = read_sections(data).sections
    return {
        section.name: data[section.offset : section.offset + section.stored]
        for section in sections
        if section.name.startswith((b".text", b".nv.constant", b".nv.global"))
    }


# Of what a recompiled cubin loses so much is said at least, and never more. The rest are words of
# the tool note, alignment and, from sm_100 on, symbols of the Mercury half.
SAID = 0.85

# The copies that are compressed here and there have their sections at other places, and debug data
# has the folder that it was compiled in. This moves the length of a compressed payload by a few
# bytes, up to 20 of 5,600, and an entry is padded to a multiple of 8.
PADDING = 8
COMPRESSED = 0.01


def agrees(said: int, gone: int) -> bool:
    """Whether the bytes that were promised are those that went, or a little less."""
    return SAID * gone < said <= gone * (1 + COMPRESSED) + PADDING


@pytest.mark.parametrize("mode", ["none", "default"])
@pytest.mark.parametrize("arch", ["75", "90", "100"])
def test_compiling_without_lines_saves_what_is_said(arch: str, mode: str, tmp_path: Path) -> None:
    """The bytes that nvcc makes without -lineinfo; code and data are the same."""
    kernel(tmp_path)
    made = {}
    for name, options in (("lines", ("-lineinfo",)), ("plain", ())):
        nvcc(tmp_path, f"-arch=sm_{arch}", *options, "-cubin", "kernel.cu", "-o", f"{name}.cubin")
        cubin = {f"sm_{arch}": tmp_path / f"{name}.cubin"}
        packed = fatbin(tmp_path, cubin, "--compress-all", f"--compress-mode={mode}")
        made[name] = packed.rename(tmp_path / f"{name}.fatbin")
    lines, plain = (sections_of(tmp_path / f"{name}.cubin") for name in made)
    assert lines == plain
    gone = made["lines"].stat().st_size - made["plain"].stat().st_size
    assert agrees(saved(made["lines"], "debug-data"), gone)
    # A cubin that was compiled without has frames, but nothing that an option would save.
    assert "debug-data" not in rules_of(made["plain"])


@pytest.mark.skipif(OBJCOPY is None, reason="needs llvm-objcopy: apt install llvm-22")
@pytest.mark.parametrize("mode", ["none", "default"])
@pytest.mark.parametrize("arch", ["75", "90", "100"])
def test_debug_code_without_its_debug_data_saves_what_is_said(
    arch: str, mode: str, tmp_path: Path
) -> None:
    """Without -G nvcc makes other code, so objcopy removes the sections; its copy is compared."""
    assert OBJCOPY is not None
    kernel(tmp_path)
    nvcc(tmp_path, f"-arch=sm_{arch}", "-G", "-cubin", "kernel.cu", "-o", "debug.cubin")
    data = (tmp_path / "debug.cubin").read_bytes()
    names = {
        section.name.decode() for section in read_sections(data).sections if is_debug(section.name)
    }
    assert ".debug_info" in names
    assert not any(name.endswith("debug_frame") for name in names)
    sizes = []
    for words in ((), [word for name in sorted(names) for word in ("-R", name)]):
        run(tmp_path, OBJCOPY, *words, "debug.cubin", "copied.cubin")
        options = ("-g", f"--compress-mode={mode}")
        made = fatbin(tmp_path, {f"sm_{arch}": tmp_path / "copied.cubin"}, *options)
        sizes.append(made.stat().st_size)
        if not words:
            said = saved(made, "debug-data")
    gone = sizes[0] - sizes[1]
    assert agrees(said, gone)


def rules_of(path: Path) -> dict[str, int]:
    """Installed bytes that each rule promises for a file; a rule has one line there."""
    sizes = measure([str(path)], recompress=True, experiments=Experiments(thorough=True))
    found = {line.rule: line.installed for line in reductions(sizes)}
    assert not sizes.unreadable
    return found


def saved(path: Path, rule: str) -> int:
    """Installed bytes that a rule promises for a file."""
    return rules_of(path)[rule]


@needs_host_compiler
def test_code_for_link_time_optimization_is_measured_and_kept(tmp_path: Path) -> None:
    """nvcc scrambles it, so it is compared as it is stored."""
    (tmp_path / "a.cu").write_text("__global__ void k(int *p) { *p = 1; }\n")
    codes = ["-gencode=arch=compute_80,code=lto_80", "-gencode=arch=compute_80,code=sm_80"]
    nvcc(tmp_path, "-dc", *codes, "a.cu", "-o", "a.o")
    path, made = tmp_path / "a.o", tmp_path / "b.o"
    sizes = measure([str(path)])
    assert sizes.unreadable == []
    assert sorted(leaf.kind for leaf in sizes.leaves if leaf.container >= 0) == [
        "LTO-IR",
        "container header",
        "relocatable cubin",
    ]
    assert prune([str(path), "-o", str(made), "--compress-mode", "none"]) == 0
    stored = [
        [path.read_bytes()[start : start + size] for start, size in lto_entries(path)]
        for path in (path, made)
    ]
    assert len(stored[0]) == 1
    assert stored[0] == stored[1]


def lto_entries(path: Path) -> list[tuple[int, int]]:
    """Where entries of LTO-IR are in a file, with their sizes in bytes."""
    places = []
    at = 0
    for leaf in measure([str(path)]).leaves:
        if leaf.kind == "LTO-IR":
            places.append((at, leaf.installed))
        at += leaf.installed
    return places
