"""Device-link steps with LTO-IR, with shared libraries, and for another machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import oracle
from helpers.containers import differences
from helpers.host_build import HostBuild
from helpers.hostlink import (
    compile_recorder,
    compile_units,
    contents,
    needs_host_compiler,
    nvcc,
    record,
    run,
    sections,
    symbols,
)
from helpers.lto_sources import write_nvvm

import pylink
from pylink.devicelink.handover import STARTED_VARIABLE

pytestmark = [oracle.needs_oracle, needs_host_compiler]

OBJECTS = ["first.o", "second.o", "third.o"]


@pytest.fixture(scope="module")
def toolkit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toolkit of the oracle with libnvvm where nvlink looks for it, which wheels have not."""
    root = tmp_path_factory.mktemp("toolkit")
    real = oracle.toolchain().bin.parent
    (root / "bin").mkdir()
    for path in (real / "bin").iterdir():
        (root / "bin" / path.name).symlink_to(path)
    write_nvvm(root)
    for path in (real / "nvvm").iterdir():
        if path.name != "lib64":
            (root / "nvvm" / path.name).symlink_to(path)
    (root / "include").symlink_to(real / "include")
    (root / "lib64").symlink_to(oracle.device_runtime())  # nvlink makes no whole program without
    return root


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("lto")
    for name in compile_units(place, ["90"]):
        (place / name).rename(place / f"plain_{name}")
    for name in OBJECTS:
        source = name.replace(".o", ".cu")
        words = ("-dc", "-dlto", "-arch=sm_90", "-Xcompiler=-fPIC", source, "-o", name)
        nvcc(place, *words)
    return place


def both(folder: Path, toolkit: Path, *words: str) -> tuple[str, str]:
    """What pylink and nvcc say when they make `made.o` and `real.o` of these words."""
    ours = (sys.executable, "-m", "pylink", "dlink", "--cuda", toolkit)
    said = (
        run(folder, *ours, *words, "-o", "made.o"),
        run(folder, toolkit / "bin/nvcc", "-dlink", *words, "-o", "real.o"),
    )
    return said[0].replace("pylink ", "nvlink "), said[1]


LTO = {
    "whole program": ["-arch=sm_90", *OBJECTS],
    "for sm_100": ["-arch=sm_100", *OBJECTS],
    "several": [
        "-gencode=arch=compute_90,code=[lto_90,sm_90]",
        "-gencode=arch=compute_100,code=sm_100",
        *OBJECTS,
    ],
    "in part": ["-arch=sm_90", "plain_first.o", *OBJECTS[1:]],
    "no LTO-IR": ["-arch=sm_90", *(f"plain_{name}" for name in OBJECTS)],
    "line information": ["-arch=sm_90", "-lineinfo", *OBJECTS],
    "options of ptxas": ["-arch=sm_90", "-Xptxas", "-O1", "-split-compile=2", *OBJECTS],
}


@pytest.mark.parametrize("name", LTO)
def test_link_time_optimization_is_that_of_nvcc(folder: Path, toolkit: Path, name: str) -> None:
    made, real = both(folder, toolkit, "-dlto", "-shared", *LTO[name])
    assert made == real
    assert symbols(folder, "made.o") == symbols(folder, "real.o")
    for section in ("__nv_module_id", ".nvFatBinSegment"):
        assert contents(folder, "made.o", section) == contents(folder, "real.o", section)
    mine, theirs = (contents(folder, file, ".nv_fatbin") for file in ("made.o", "real.o"))
    assert differences(mine, theirs) == []


LIBRARY = """\
__device__ int shade(int x) { return x * 2; }
__global__ void paint(int *p) { *p = shade(*p); }
__attribute__((visibility("default"))) void draw(int *p) { paint<<<1, 1>>>(p); }
"""
PROGRAM = """\
#include <cstdio>
__device__ int shade(int);
void draw(int *);
__global__ void start(int *p) { *p = shade(*p); }
int main()
{
    start<<<1, 1>>>(nullptr);
    draw(nullptr);
    std::puts("end of main");
}
"""


@pytest.mark.parametrize("visibility", ["default", "hidden"])
def test_units_of_shared_libraries_are_registered(tmp_path: Path, visibility: str) -> None:
    """Also where only the library sees its wrapper; nvcc with pylink as its nvlink is the other."""
    build = HostBuild(tmp_path)
    build.write(paint_cu=LIBRARY, main_cu=PROGRAM)
    built = build.compile("paint.cu", "-rdc=true", f"-Xcompiler=-fvisibility={visibility}")
    build.library("libpaint.so", [built])
    main = build.compile("main.cu", "-rdc=true")
    words = ["-arch=sm_90", "-shared", main, "-L.", "-lpaint"]
    build.run("env", f"{STARTED_VARIABLE}=1", build.nvcc, "-dlink", *words, "-o", "real.o")
    build.run(sys.executable, "-m", "pylink", "dlink", *words, "-o", "made.o")
    assert symbols(tmp_path, "made.o") == symbols(tmp_path, "real.o")
    logs = []
    for step in ("real.o", "made.o"):
        build.run("g++", main, step, "-L.", "-Lruntime", "-lpaint", "-lcudart", "-o", "program")
        logs.append(build.start("program").text)
    assert logs[0] == logs[1]
    assert "use _Z5paintPi: image" in logs[1]


def test_the_object_for_aarch64_is_well_formed(folder: Path) -> None:
    """Its symbols are those for x86-64; `readelf` and `objdump` find nothing wrong."""
    inputs = [f"plain_{name}" for name in OBJECTS]
    paths = [str(folder / name) for name in inputs]
    made = {}
    for machine, number in (("X86_64", 62), ("AARCH64", 183)):
        data = []
        for path in paths:
            content = bytearray(Path(path).read_bytes())
            content[18:20] = number.to_bytes(2, "little")
            data.append((path, bytes(content)))
        made[machine] = pylink.dlink(data, archs="sm_90").data
        (folder / f"{machine}.o").write_bytes(made[machine])
    assert symbols(folder, "AARCH64.o") == symbols(folder, "X86_64.o")
    assert sections(folder, "AARCH64.o")[".nv_fatbin"] == ("PROGBITS", "A", "256")
    text = run(folder, "readelf", "-aW", "AARCH64.o")
    assert "Warning" not in text
    assert "AArch64 feature: BTI, PAC" in text
    assert "R_AARCH64_ADR_GOT_PAGE" in text
    assert text.count("R_AARCH64_CALL26") == 2
    frames = run(folder, "readelf", "--debug-dump=frames-interp", "AARCH64.o")
    assert frames.count("FDE") == 5


def test_an_output_that_cannot_be_written_leaves_nothing(folder: Path) -> None:
    before = sorted(os.listdir(folder))
    done = subprocess.run(
        [sys.executable, "-m", "pylink", "dlink", "plain_first.o", "-o", "absent/made.o"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "absent/made.o" in done.stderr
    assert sorted(os.listdir(folder)) == before


UNIT_STEPS = {
    "one": ["-arch=sm_90"],
    "several": ["-gencode=arch=compute_90,code=sm_90", "-gencode=arch=compute_100,code=sm_100"],
    "not compressed": ["-arch=sm_90", "-compress-mode=none"],
    "line information": ["-arch=sm_90", "-lineinfo"],
}


@pytest.mark.parametrize("name", UNIT_STEPS)
def test_a_relocatable_step_makes_the_unit_of_nvcc(tmp_path: Path, name: str) -> None:
    archs = ["90", "100"] if name == "several" else ["90"]
    objects = compile_units(tmp_path, archs)
    words = [*UNIT_STEPS[name], "-r", "-shared", *objects, "-o", "unit.o"]
    ours = (sys.executable, "-m", "pylink", "dlink", "--cuda", oracle.toolchain().bin.parent)
    assert run(tmp_path, *ours, *words) == ""
    (tmp_path / "unit.o").rename(tmp_path / "made.o")
    nvcc(tmp_path, "-dlink", *words)
    (tmp_path / "unit.o").rename(tmp_path / "real.o")
    assert symbols(tmp_path, "made.o") == symbols(tmp_path, "real.o")
    assert sections(tmp_path, "made.o") == sections(tmp_path, "real.o")
    for section in ("__nv_module_id", ".nvFatBinSegment", ".data.rel", ".init_array"):
        assert contents(tmp_path, "made.o", section) == contents(tmp_path, "real.o", section)
    mine, theirs = (contents(tmp_path, at, "__nv_relfatbin") for at in ("made.o", "real.o"))
    assert differences(mine, theirs) == []


def test_a_unit_registers_itself_with_the_last_step(tmp_path: Path) -> None:
    first, second, third = compile_units(tmp_path, ["90"])
    compile_recorder(tmp_path)
    # Alone it has all that it needs; what went in still asks for its own registration.
    (tmp_path / "main.cu").write_text(
        "__device__ int scale(int);\n__global__ void k(int *p) { *p = scale(1); }\n"
        "int main() { return 0; }\n"
    )
    nvcc(tmp_path, "-dc", "-arch=sm_90", "-Xcompiler=-fPIC", "main.cu", "-o", "main.o")
    del first, third
    said = []
    home = oracle.toolchain().bin.parent
    for tool in (
        (sys.executable, "-m", "pylink", "dlink", "--cuda", home),
        (oracle.toolchain().tool("nvcc"), "-dlink"),
    ):
        run(tmp_path, *tool, "-arch=sm_90", "-r", second, "-shared", "-o", "unit.o")
        run(tmp_path, *tool, "-arch=sm_90", "unit.o", "main.o", "-shared", "-o", "last.o")
        parts = ("main.o", "unit.o", "last.o", "recorder.o")
        run(tmp_path, "g++", "-Wl,--fatal-warnings", *parts, "-o", "program")
        said.append(re.sub(r"\d+ bytes, hash \w+", "bytes", record(tmp_path, "program")))
    assert said[0] == said[1]
    assert said[0].count("part:") == 2
