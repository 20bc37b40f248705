"""Device-link steps for another machine, and of other releases, beside those of their nvcc."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import oracle
from helpers.containers import differences
from helpers.hostlink import (
    RECORDER,
    compile_units,
    contents,
    needs_host_compiler,
    nvcc,
    run,
    sections,
    symbols,
    without_hash,
)

pytestmark = [oracle.needs_oracle, needs_host_compiler]

PREFIX = "aarch64-linux-gnu-"
EMULATOR = ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")
OBJECTS = ["first.o", "second.o", "third.o"]

needs_cross_compiler = pytest.mark.skipif(
    not (shutil.which(f"{PREFIX}g++") and shutil.which(EMULATOR[0])),
    reason="needs a compiler for aarch64: apt install g++-aarch64-linux-gnu qemu-user",
)


def both(folder: Path, *words: str) -> None:
    """Make `made.o` by pylink and `real.o` by nvcc; neither may say anything."""
    home = oracle.toolchain().bin.parent
    ours = (sys.executable, "-m", "pylink", "dlink", "--cuda", home)
    assert run(folder, *ours, *words, "-o", "made.o") == ""
    assert nvcc(folder, "-dlink", *words, "-o", "real.o") == ""


def assert_same_object(folder: Path) -> None:
    assert symbols(folder, "made.o") == symbols(folder, "real.o")
    assert sections(folder, "made.o") == sections(folder, "real.o")


@needs_cross_compiler
@pytest.mark.parametrize("compiler", [[], ["-ccbin", f"{PREFIX}g++"]], ids=["objects", "ccbin"])
def test_an_object_for_aarch64_registers_what_that_of_nvcc_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiler: list[str]
) -> None:
    """The machine is that of the objects, whatever compiler is named."""
    monkeypatch.setenv("NVCC_CCBIN", f"{PREFIX}g++")
    compile_units(tmp_path, ["90", "100"])
    archs = [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in ("90", "100")]
    # The toolkit's libcudadevrt is that of this machine.
    both(tmp_path, *archs, *compiler, "-shared", "-cudadevrt=none", *OBJECTS)
    assert_same_object(tmp_path)
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    compile = (f"{PREFIX}gcc", "-O1", "-fPIC", "-w", "-c")
    run(tmp_path, *compile, str(RECORDER), "-o", "recorder.o")
    run(tmp_path, *compile, "main.c", "-o", "main.o")
    said: dict[str, list[str]] = {}
    for form in (["-pie"], ["-no-pie"], ["-Wl,--gc-sections"]):
        for step in ("made.o", "real.o"):
            link = (f"{PREFIX}g++", "-Wl,--fatal-warnings", *form, "-o", "program")
            run(tmp_path, *link, "main.o", *OBJECTS, "recorder.o", step)
            lines = run(tmp_path, *EMULATOR, "./program")
            said.setdefault(step, []).append(re.sub(r": \d+ bytes", ":", without_hash(lines)))
    assert said["made.o"] == said["real.o"]
    assert all(lines.count("function of 1") == 4 for lines in said["made.o"])


@needs_cross_compiler
def test_without_objects_the_compiler_tells_the_machine(tmp_path: Path) -> None:
    (tmp_path / "empty.c").write_text("")
    run(tmp_path, f"{PREFIX}gcc", "-c", "empty.c", "-o", "empty.o")
    run(tmp_path, "ar", "rcs", "libempty.a", "empty.o")
    words = ("-arch=sm_90", "-ccbin", f"{PREFIX}g++", "-shared", "-cudadevrt=none")
    both(tmp_path, *words, "libempty.a")
    for file in ("made.o", "real.o"):
        assert "AArch64" in run(tmp_path, "readelf", "-h", file)
    assert_same_object(tmp_path)


STEPS = {
    "plain": ["-shared"],
    "size": ["-shared", "-compress-mode=size"],
    "line information": ["-shared", "-lineinfo"],
    "debug": ["-shared", "-G"],
    "unit": ["-shared", "-r"],
}


@pytest.mark.parametrize("name", oracle.others())
def test_steps_of_other_releases_are_those_of_their_nvcc(tmp_path: Path, name: str) -> None:
    """Also with objects of 13.0, which are linked as by the release of the toolkit."""
    archs = ("80", "90", "100")
    compile_units(tmp_path, archs)
    words = {arch: f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in archs}
    with oracle.release(name):
        for step in STEPS.values():
            is_unit = "-r" in step
            # For sm_100 nvlink -r of 13.5 drops a stack size of older objects that pylink keeps.
            linked = [words[arch] for arch in archs if not (is_unit and arch == "100")]
            both(tmp_path, *linked, *step, *OBJECTS)
            section = "__nv_relfatbin" if is_unit else ".nv_fatbin"
            containers = [contents(tmp_path, file, section) for file in ("made.o", "real.o")]
            assert differences(*containers) == [], step
            assert sections(tmp_path, "made.o") == sections(tmp_path, "real.o")


def test_objects_newer_than_the_toolkit_are_refused(tmp_path: Path) -> None:
    """As nvcc refuses them."""
    newest = max(oracle.others(), key=lambda name: [int(part) for part in name.split(".")])
    with oracle.release(newest):
        compile_units(tmp_path, ["90"])
    said = []
    home = oracle.toolchain().bin.parent
    for tool in (
        (sys.executable, "-m", "pylink", "dlink", "--cuda", str(home)),
        (oracle.toolchain().tool("nvcc"), "-dlink"),
    ):
        done = subprocess.run(
            [*tool, "-arch=sm_90", *OBJECTS, "-o", "x.o"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        said.append((done.returncode, done.stderr.splitlines()[0].partition(" ")[2]))
    assert said[0] == said[1]
    assert said[0][0] == 1
    assert not (tmp_path / "x.o").exists()
