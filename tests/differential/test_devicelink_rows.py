"""Rows of what `nvcc -dlink` does that no other test has, each with what comes of it here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import oracle
from helpers.containers import differences
from helpers.hostlink import compile_units, contents, needs_host_compiler, run, sections, symbols

pytestmark = [oracle.needs_oracle, needs_host_compiler]

OBJECTS = ["first.o", "second.o", "third.o"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Objects for sm_80 and sm_90, and one under each name that nvcc has an opinion of."""
    place = tmp_path_factory.mktemp("rows")
    compile_units(place, ["80", "90"])
    (place / "main.c").write_text("int main(void) { return 0; }\n")
    run(place, "gcc", "-fPIC", "-c", "main.c", "-o", "main.o")
    for name in ("third.obj", "third.lo", "third", "third.ltoir"):
        shutil.copy(place / "third.o", place / name)
    run(place, "g++", "-shared", "main.o", "-o", "libplain.so")
    shutil.copy(place / "libplain.so", place / "libplain.so.1.2")
    source = place / "lone.cu"
    source.write_text("__global__ void lone(int *p) { *p = 1; }\n")
    nvcc = oracle.toolchain().tool("nvcc")
    for form in ("ptx", "cubin", "fatbin"):
        run(place, nvcc, "-rdc=true", "-arch=sm_90", f"-{form}", "lone.cu", "-o", f"lone.{form}")
    (place / "words.rsp").write_text(" ".join(OBJECTS))
    (place / "sub").mkdir()
    return place


def start(folder: Path, *words: str | Path, **variables: str) -> tuple[int, list[str]]:
    """Status and messages, without the name of the tool and notes, which nvcc has none of."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )
    lines = [
        line.split(" ", 1)[1] if line.startswith(("pylink ", "nvlink ", "nvcc ")) else line
        for line in (done.stdout + done.stderr).splitlines()
    ]
    return done.returncode, [line for line in lines if line and not line.startswith("note ")]


def dlink(folder: Path, *words: str, **variables: str) -> tuple[int, list[str]]:
    home = oracle.toolchain().bin.parent
    ours = (sys.executable, "-m", "pylink", "dlink", "--cuda", home)
    return start(folder, *ours, *words, **variables)


# Words, and the status of both. Of 0 the objects are the same, too, where there is one.
ROWS: dict[str, tuple[int, list[str]]] = {
    # Which architectures.
    "PTX alone": (0, ["-gencode=arch=compute_90,code=compute_90", *OBJECTS]),
    "a virtual architecture": (0, ["-arch=compute_90", *OBJECTS]),
    "a long virtual architecture": (0, ["-arch=compute_100", *OBJECTS]),
    "LTO-IR alone": (1, ["-gencode=arch=compute_90,code=lto_90", *OBJECTS]),
    "the GPU at hand, and none is": (0, ["-arch=native", *OBJECTS]),
    "a pair twice": (0, [*["-gencode=arch=compute_90,code=sm_90"] * 2, *OBJECTS]),
    "nothing": (0, OBJECTS),
    "LTO-IR beside code": (0, ["-gencode=arch=compute_90,code=[sm_90,lto_90]", *OBJECTS]),
    # Options.
    "no warnings": (0, ["-arch=sm_75", "-w", *OBJECTS]),
    "no remarks": (0, ["-arch=sm_75", "-Xnvlink", "-disable-infos", *OBJECTS]),
    "no remarks, no warnings": (0, ["-arch=sm_75", "-w", "-Xnvlink=-disable-infos", *OBJECTS]),
    "resources": (0, ["-arch=sm_90", "-res-usage", *OBJECTS]),
    "no runtime": (1, ["-arch=sm_90", "--cudart", "none", *OBJECTS]),
    "no option for fatbinary": (1, ["-arch=sm_90", "-Xfatbinary", "-g", *OBJECTS]),
    "options for fatbinary": (0, ["-arch=sm_90", "-Xfatbin", "-compress-all", *OBJECTS]),
    "no host linker script": (1, ["-arch=sm_90", "-use-host-linker-script", *OBJECTS]),
    "a response file of gcc": (1, ["-arch=sm_90", "@words.rsp"]),
    "-optf": (0, ["-arch=sm_90", "-optf", "words.rsp"]),
    "a library": (0, ["-arch=sm_90", "-lib", *OBJECTS]),
    "PTX as the output": (1, ["-arch=sm_90", "-ptx", *OBJECTS]),
    "compiled only": (1, ["-arch=sm_90", "-c", *OBJECTS]),
    "compiled for a link": (1, ["-arch=sm_90", "-dc", *OBJECTS]),
    "dependencies": (1, ["-arch=sm_90", "-M", *OBJECTS]),
    "without PIE": (0, ["-arch=sm_90", "-Xcompiler", "-fno-pie", *OBJECTS]),
    "a code model": (0, ["-arch=sm_90", "-Xcompiler=-mcmodel=large", *OBJECTS]),
    "control-flow protection": (0, ["-arch=sm_90", "-Xcompiler=-fcf-protection", *OBJECTS]),
    # Inputs.
    "an object of Windows": (0, ["-arch=sm_90", "first.o", "second.o", "third.obj"]),
    "an object of libtool": (1, ["-arch=sm_90", "first.o", "second.o", "third.lo"]),
    "no extension": (1, ["-arch=sm_90", "first.o", "second.o", "third"]),
    "LTO-IR without its option": (1, ["-arch=sm_90", "first.o", "second.o", "third.ltoir"]),
    "PTX": (0, ["-arch=sm_90", "lone.ptx", *OBJECTS]),
    "a cubin": (0, ["-arch=sm_90", "lone.cubin"]),
    "a fat binary": (0, ["-arch=sm_90", "lone.fatbin"]),
    "a shared library": (0, ["-arch=sm_90", *OBJECTS, "libplain.so"]),
    "a library that is not there": (0, ["-arch=sm_90", *OBJECTS, "-labsent"]),
}
# The id has the path of a temporary file.
UNSTABLE = ("a cubin", "a fat binary", "PTX")


@pytest.mark.parametrize("name", ROWS)
def test_what_nvcc_does_is_done(folder: Path, name: str) -> None:
    status, words = ROWS[name]
    for file in ("made.o", "real.o"):
        (folder / file).unlink(missing_ok=True)
    made = dlink(folder, "-shared", *words, "-o", "made.o")
    real = start(
        folder, oracle.toolchain().tool("nvcc"), "-dlink", "-shared", *words, "-o", "real.o"
    )
    assert (made[0], real[0]) == (status, status), (made, real)
    assert made[1] == real[1]
    assert (folder / "made.o").exists() == (folder / "real.o").exists()
    if (folder / "real.o").exists() and name not in UNSTABLE:
        assert symbols(folder, "made.o") == symbols(folder, "real.o")
        assert sections(folder, "made.o") == sections(folder, "real.o")
        mine, theirs = (contents(folder, f"{file}.o", ".nv_fatbin") for file in ("made", "real"))
        assert differences(mine, theirs) == []


def test_all_inputs_without_code_are_named_where_warnings_are_errors(folder: Path) -> None:
    """nvlink names the first and ends with an internal error."""
    words = ("-arch=sm_75", "-Werror", "all-warnings", *OBJECTS)
    real = start(folder, oracle.toolchain().tool("nvcc"), "-dlink", *words, "-o", "real.o")
    assert (real[0], real[1][-1]) == (1, "fatal   : elfLink internal error")
    wanted = [f"error   : SM Arch ('sm_75') not found in '{name}'" for name in OBJECTS]
    assert wanted[0] == real[1][0]
    assert dlink(folder, *words, "-o", "refused.o") == (255, wanted)
    assert not (folder / "refused.o").exists()


def test_libraries_with_versions_are_taken_which_nvcc_refuses(folder: Path) -> None:
    words = ("-arch=sm_90", *OBJECTS)
    assert dlink(folder, *words, "-o", "without.o") == (0, [])
    assert dlink(folder, *words, "libplain.so.1.2", "-o", "with.o") == (0, [])
    assert (folder / "with.o").read_bytes() == (folder / "without.o").read_bytes()


IGNORED = [
    ["-Xlinker", "-z,now"],
    ["--cudart", "shared"],
    ["-maxrregcount=32"],
    ["-use_fast_math"],
    ["-Xptxas", "-O1"],
    ["-rdc=true"],
    ["-Wno-deprecated-gpu-targets"],
    ["-std=c++17", "-DA=1", "-I.", "-isystem", "."],
    ["-g"],
    ["-t", "3"],
    ["-hls=use-lcs"],
    ["-Xcompiler", "-fPIC,-Wall"],
]


def test_options_that_change_nothing_leave_every_byte(folder: Path) -> None:
    words = ("-arch=sm_90", *OBJECTS)
    assert dlink(folder, *words, "-o", "plain.o") == (0, [])
    plain = (folder / "plain.o").read_bytes()
    for more in IGNORED:
        assert dlink(folder, *words, *more, "-o", "more.o") == (0, []), more
        assert (folder / "more.o").read_bytes() == plain, more
    # A variable of nvlink that nvcc does not hand on.
    assert dlink(folder, *words, "-o", "more.o", NVLINK_FLAGS="-g --unheard-of") == (0, [])
    assert (folder / "more.o").read_bytes() == plain


def test_names_and_places_leave_no_trace_but_in_a_unit(folder: Path) -> None:
    words = ("-arch=sm_90", *OBJECTS)
    assert dlink(folder, *words, "-o", "here.o") == (0, [])
    others = tuple(f"../{name}" for name in OBJECTS)
    assert dlink(folder / "sub", "-arch=sm_90", *others, "-o", "another.name.o") == (0, [])
    assert (folder / "sub/another.name.o").read_bytes() == (folder / "here.o").read_bytes()
    for name in ("here.o", "sub/here.o"):
        assert dlink(folder, "-r", *words, "-o", name) == (0, [])
    assert (folder / "here.o").read_bytes() != (folder / "sub/here.o").read_bytes()
