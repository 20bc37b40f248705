"""Builds that name nvcc and get that of an overlay: the same results, messages and statuses."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from helpers import oracle
from helpers.containers import differences
from helpers.hostlink import (
    compile_recorder,
    compile_units,
    contents,
    needs_host_compiler,
    record,
    run,
    without_hash,
)

from pylink.command.overlay import make_overlay

pytestmark = [oracle.needs_oracle, needs_host_compiler]

OBJECTS = ["first.o", "second.o", "third.o"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("program")
    compile_units(place, ["80", "90"])
    compile_recorder(place)
    (place / "main.c").write_text("int main(void) { return 0; }\n")
    (place / "loose.cu").write_text("__device__ int loose(int x) { return x; }\n")
    run(place, "gcc", "-fPIC", "-c", "main.c", "-o", "main.o")
    (place / "words.rsp").write_text('first.o "second.o"\nthird.o\n')
    make_overlay(str(place / "overlay"), str(oracle.toolchain().bin.parent), notes=False)
    (place / "real").mkdir()
    (place / "made").mkdir()
    (place / "temporary").mkdir()
    return place


def nvcc(folder: Path, which: str, words: Sequence[str], **variables: str) -> tuple[int, str]:
    """Status and messages of the nvcc of the toolkit (`real`) or of the overlay (`made`)."""
    binaries = oracle.toolchain().bin if which == "real" else folder / "overlay" / "bin"
    done = subprocess.run(
        [binaries / "nvcc", *(word.replace("@", which) for word in words)],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder / "temporary"), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert os.listdir(folder / "temporary") == []
    said = re.sub(r"tmpxft_\w+-\w+_|pylink-[0-9]+-\w+/", "", done.stdout)
    return done.returncode, said.replace(str(binaries), "BIN").replace(f"{which}/", "")


PROGRAMS: dict[str, list[str]] = {
    "plain": [*OBJECTS, "-arch=sm_90"],
    "for two": [
        *OBJECTS,
        "-gencode=arch=compute_80,code=sm_80",
        "-gencode=arch=compute_90,code=sm_90",
    ],
    "options file": ["--options-file", "words.rsp", "-arch=sm_90", "-rdc=true"],
    "for the host": [*OBJECTS, "-arch=sm_90", "-Xcompiler", "-pthread,-O2", "-Xlinker", "-z,now"],
    "no PIE": [*OBJECTS, "-arch=sm_90", "-Xcompiler", "-no-pie"],
    "sections": [*OBJECTS, "-arch=sm_90", "-Xlinker", "--gc-sections"],
    "debug": [*OBJECTS, "-arch=sm_90", "-G", "-g"],
    "sources": [*OBJECTS, "loose.cu", "-arch=sm_90", "-rdc=true"],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_that_of_nvcc(folder: Path, name: str) -> None:
    library = f"-L{oracle.device_runtime()}"  # of a wheel, where nvcc looks for no library
    words = [*PROGRAMS[name], library, "recorder.o", "main.o", "-o", "@/program"]
    said = [nvcc(folder, which, words) for which in ("real", "made")]
    assert said[0] == said[1] == (0, "")
    lines = [record(folder, f"{which}/program") for which in ("real", "made")]
    assert without_sizes(lines[1]) == without_sizes(lines[0])
    assert lines[1].count("function of 1") == 4
    containers = [contents(folder, f"{which}/program", ".nv_fatbin") for which in ("made", "real")]
    assert differences(*containers) == []


def without_sizes(lines: str) -> str:
    """Lines without the size of the container, in which tool notes count."""
    return re.sub(r"linked: \d+ bytes", "linked:", without_hash(lines))


def test_a_shared_library_and_what_opens_it(folder: Path) -> None:
    said = []
    library = f"-L{oracle.device_runtime()}"
    for which in ("real", "made"):
        words = ["-arch=sm_90", "-shared", *OBJECTS, "recorder.o", library, "-o", "@/lib.so"]
        assert nvcc(folder, which, words) == (0, "")
        run(folder, "gcc", "main.o", "-Wl,--no-as-needed", f"{which}/lib.so", "-o", "loads")
        said.append(without_sizes(run(folder, "env", "LD_LIBRARY_PATH=.", "./loads")))
    assert said[0] == said[1]
    assert said[0].count("function of 1") == 4


FAULTS: dict[str, tuple[int, list[str]]] = {
    "undefined": (255, ["first.o", "-arch=sm_90", "-o", "@/fails"]),
    "missing": (1, ["absent.o", "-arch=sm_90", "-o", "@/fails"]),
    "unknown option": (1, ["first.o", "--unheard-of", "-o", "@/fails"]),
    "unknown architecture": (1, ["first.o", "-arch=sm_17", "-o", "@/fails"]),
    "no runtime": (1, [*OBJECTS, "main.o", "-arch=sm_90", "-cudart=none", "-o", "@/fails"]),
    "no code": (0, ["-arch=sm_100", *OBJECTS, "-o", "@/empty.o", "-dlink"]),
    "host linker": (1, [*OBJECTS, "-arch=sm_90", "-Xlinker", "--unheard-of", "-o", "@/fails"]),
    "step": (255, ["first.o", "-arch=sm_90", "-dlink", "-o", "@/fails"]),
    "nothing": (1, []),
}


@pytest.mark.parametrize("name", FAULTS)
def test_statuses_and_messages_are_those_of_nvcc(folder: Path, name: str) -> None:
    status, words = FAULTS[name]
    real, made = (nvcc(folder, which, words) for which in ("real", "made"))
    assert real[0] == status
    assert made == real
    assert not (folder / "made" / "fails").exists()


def test_what_is_only_asked_for_is_said_by_nvcc(folder: Path) -> None:
    """With the programs of the overlay."""
    for words in (
        ["--version"],
        ["--dryrun", "-dlink", *OBJECTS, "-o", "@/x.o"],
        ["--dryrun", *OBJECTS, "-o", "@/x"],
        ["--dryrun", "-c", "loose.cu", "-o", "@/x.o"],
    ):
        real, made = (nvcc(folder, which, words) for which in ("real", "made"))
        assert real[0] == 0
        assert without_path(made[1]) == without_path(real[1])


def without_path(text: str) -> str:
    """What is said without the search path."""
    return re.sub(r"(?m)^#\$ (LD_LIBRARY_)?PATH=.*\n", "", text)


def test_verbose_lines_have_the_form_of_nvcc(folder: Path) -> None:
    library = f"-L{oracle.device_runtime()}"
    words = ["-v", *OBJECTS, "main.o", library, "-arch=sm_90", "-o", "@/x"]
    status, said = nvcc(folder, "made", words)
    assert status == 0
    assert all(line.startswith("#$ ") for line in said.splitlines())
    assert "#$ TOP=BIN/..\n" in said
    assert re.search(r'#\$ g\+\+ .* "\S+/a_dlink.o" "first.o" "second.o" "third.o" "main.o"', said)


def test_an_interrupted_link_leaves_nothing(folder: Path) -> None:
    """Neither the object of the step, nor a program. The host compiler waits; nvcc leaves files."""
    slow = folder / "slow"
    slow.mkdir()
    (slow / "g++").write_text("#!/bin/sh\n: > started\nexec sleep 60\n")
    (slow / "g++").chmod(0o755)
    environment = {
        **os.environ,
        "TMPDIR": str(slow),
        "PATH": f"{slow}{os.pathsep}{os.environ['PATH']}",
    }
    words = ["-arch=sm_90", *OBJECTS, "main.o", "-o", "interrupted"]
    process = subprocess.Popen(
        [folder / "overlay" / "bin" / "nvcc", *words],
        cwd=folder,
        env=environment,
        start_new_session=True,
    )
    while not (folder / "started").exists() and process.poll() is None:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait() == -signal.SIGINT
    assert not [name for name in os.listdir(slow) if "pylink" in name]
    assert not (folder / "interrupted").exists()


def test_notes_follow_where_the_overlay_has_them(folder: Path) -> None:
    words = ["-arch=sm_100", "-dlink", *OBJECTS, "-o", "@/empty.o"]
    status, plain = nvcc(folder, "made", words)
    (folder / "overlay" / "bin" / "nvlink.notes").touch()
    try:
        assert nvcc(folder, "made", words)[0] == status == 0
        said = nvcc(folder, "made", words)[1].splitlines()
    finally:
        (folder / "overlay" / "bin" / "nvlink.notes").unlink()
    assert [line for line in said if line.startswith("nvlink ")] == plain.splitlines()
    assert any(line.startswith("pylink note") for line in said)
