"""The object of a device-link step against that of nvcc, by readelf and by what it registers."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from helpers import oracle
from helpers.hostlink import (
    LINKERS,
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

from pylink.devicelink.container import Container
from pylink.devicelink.hostobject import HostObject, Unit

pytestmark = [oracle.needs_oracle, needs_host_compiler]

ARCH = "90"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the objects of three units, and the step of nvcc as `real.o`."""
    place = tmp_path_factory.mktemp("object")
    objects = compile_units(place, [ARCH])
    compile_recorder(place)
    (place / "main.c").write_text("int main(void) { return 0; }\n")
    run(place, "gcc", "-fPIC", "-c", "main.c", "-o", "main.o")
    nvcc(place, f"-arch=sm_{ARCH}", "-dlink", "-shared", *objects, "-o", "real.o")
    hidden = "-Xcompiler=-fvisibility=hidden"
    nvcc(place, f"-arch=sm_{ARCH}", "-dlink", "-shared", hidden, *objects, "-o", "real.hidden.o")
    nvcc(place, f"-arch=sm_{ARCH}", "-dlink", "-shared", "main.o", "-o", "real.empty.o")
    return place


def remake(folder: Path, real: str, made: str, *, hides: bool = False) -> None:
    """Make our object with the container and the ids that nvcc's has."""
    ids: list[str] = []
    if "__nv_module_id" in sections(folder, real):
        texts = contents(folder, real, "__nv_module_id").split(b"\0")
        ids = [text.removeprefix(b"def ").decode() for text in texts if text]
    payload = contents(folder, real, ".nv_fatbin")
    pieces = HostObject([Unit(name) for name in ids], "X86_64", hides=hides).pieces(
        Container([payload])
    )
    (folder / made).write_bytes(b"".join(pieces))


CASES = {"real.o": False, "real.hidden.o": True, "real.empty.o": False}


@pytest.mark.parametrize("real", CASES)
def test_symbols_and_sections_are_those_of_nvcc(folder: Path, real: str) -> None:
    remake(folder, real, "made.o", hides=CASES[real])
    assert symbols(folder, "made.o") == symbols(folder, real)
    assert sections(folder, "made.o") == sections(folder, real)
    if real != "real.empty.o":
        for section in ("__nv_module_id", ".nvFatBinSegment"):
            assert contents(folder, "made.o", section) == contents(folder, real, section)


def test_the_object_says_that_it_keeps_to_control_flow_protection(folder: Path) -> None:
    remake(folder, "real.o", "made.o")
    said = run(folder, "readelf", "-nW", "made.o")
    assert "x86 feature: IBT, SHSTK" in said


def test_readers_find_nothing_wrong_and_frames_cover_all_code(folder: Path) -> None:
    remake(folder, "real.o", "made.o")
    text = run(folder, "readelf", "-aW", "made.o")
    assert "Warning" not in text
    assert "Error" not in text
    frames = run(folder, "readelf", "--debug-dump=frames-interp", "made.o")
    covered = [
        (int(first, 16), int(last, 16)) for first, last in re.findall(r"pc=(\w+)\.\.(\w+)", frames)
    ]
    size = int(re.findall(r" \.text +PROGBITS +\w+ \w+ (\w+)", text)[0], 16)
    assert covered[0][0] == 0
    assert covered[-1][1] == size
    assert all(piece[1] == next[0] for piece, next in itertools.pairwise(covered))


FORMS = {
    "program": [],
    "no PIE": ["-no-pie"],
    "PIE": ["-pie"],
    "without unused sections": ["-Wl,--gc-sections"],
}


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("form", FORMS)
def test_a_program_registers_what_it_does_with_the_object_of_nvcc(
    folder: Path, form: str, linker: str
) -> None:
    remake(folder, "real.o", "made.o")
    said = {}
    objects = ["main.o", "first.o", "second.o", "third.o", "recorder.o"]
    for step in ("real.o", "made.o"):
        command = ["g++", f"-fuse-ld={linker}", "-Wl,--fatal-warnings", *FORMS[form]]
        run(folder, *command, *objects, step, "-o", f"{step}.program")
        said[step] = record(folder, f"{step}.program")
    assert said["made.o"] == said["real.o"]
    assert said["made.o"].count("function of 1") == 4
    assert said["made.o"].endswith("unregister 1\n")


def test_the_order_of_constructors_decides(folder: Path) -> None:
    remake(folder, "real.o", "made.o")
    said = []
    for objects in (["first.o", "second.o", "third.o"], ["third.o", "first.o", "second.o"]):
        run(folder, "g++", "main.o", *objects, "recorder.o", "made.o", "-o", "ordered")
        said.append(re.findall(r"function of 1: (\w+)", record(folder, "ordered")))
    assert sorted(said[0]) == sorted(said[1])
    assert said[0] != said[1]


def test_a_library_registers_when_it_is_opened_and_ends_when_it_is_closed(folder: Path) -> None:
    (folder / "open.c").write_text(
        """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **words)
{
    void *library = dlopen(words[1], RTLD_NOW);
    if (!library)
        return fputs(dlerror(), stderr), 1;
    fputs("opened\\n", stderr);
    if (dlclose(library))
        return 1;
    fputs("closed\\n", stderr);
    return 0;
}
"""
    )
    run(folder, "gcc", "open.c", "recorder.o", "-rdynamic", "-o", "opens", "-ldl")
    remake(folder, "real.o", "made.o")
    said = {}
    for step in ("real.o", "made.o"):
        objects = ["first.o", "second.o", "third.o"]
        run(folder, "g++", "-shared", *objects, step, "-o", f"{step}.so")
        said[step] = run(folder, "./opens", f"./{step}.so")
    assert said["made.o"] == said["real.o"]
    assert said["made.o"].index("opened") < said["made.o"].index("unregister 1")
    assert said["made.o"].endswith("unregister 1\nclosed\n")


def test_without_units_nothing_is_registered(folder: Path) -> None:
    remake(folder, "real.empty.o", "made.o")
    run(folder, "g++", "main.o", "recorder.o", "made.o", "-o", "empty")
    assert record(folder, "empty") == ""
