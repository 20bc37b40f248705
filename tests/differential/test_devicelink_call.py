"""`pylink.dlink`: the step of the command as a call."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from helpers import oracle
from helpers.compare import compare
from helpers.hostlink import compile_units, needs_host_compiler

import pylink

pytestmark = [oracle.needs_oracle, needs_host_compiler]

ARCHS = ["sm_80", "sm_90"]
OBJECTS = ["first.o", "second.o", "third.o"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("call")
    compile_units(place, ["80", "90"])
    return place


@pytest.fixture
def home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    return oracle.toolchain().bin.parent


def by_command(folder: Path, home: Path, *words: str) -> bytes:
    command = [sys.executable, "-m", "pylink", "dlink", "--cuda", str(home), *words]
    subprocess.run([*command, *OBJECTS, "-o", "command.o"], cwd=folder, check=True)
    return (folder / "command.o").read_bytes()


GENCODE = ["-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_90,code=sm_90"]


@pytest.mark.parametrize("form", ["object", "fatbin"])
def test_it_makes_what_the_command_makes(
    folder: Path, home: Path, form: Literal["object", "fatbin"]
) -> None:
    made = pylink.dlink(OBJECTS, archs=ARCHS, form=form, toolkit=home)
    words = GENCODE if form == "object" else [*GENCODE, "-fatbin"]
    assert made.data == by_command(folder, home, *words)
    assert list(made.cubins) == ARCHS
    # What loads a fat binary by itself may want kernels that no host code names.
    said = {record.kind for record in made.diagnostics}
    assert said == (set() if form == "object" else {"kernels-removed"})


def test_inputs_in_memory_make_the_same_and_a_file_is_written(folder: Path, home: Path) -> None:
    inputs = [(name, (folder / name).read_bytes()) for name in OBJECTS]
    made = pylink.dlink(inputs, archs=ARCHS, output="written.o", toolkit=home)
    assert made.data == (folder / "written.o").read_bytes()
    assert made.data == pylink.dlink(OBJECTS, archs=ARCHS, toolkit=home).data


def test_each_cubin_is_that_of_a_link_alone(folder: Path, home: Path) -> None:
    made = pylink.dlink(OBJECTS, archs=ARCHS, toolkit=home)
    for arch, cubin in made.cubins.items():
        assert compare(cubin, pylink.link(OBJECTS, arch=arch).image) == []
    step = pylink.dlink(OBJECTS, archs=["sm_90", "sm_80"], form="cubin", toolkit=home)
    assert list(step.cubins) == ["sm_90"]
    assert step.data == step.cubins["sm_90"]


def test_options_of_links_count(folder: Path, home: Path) -> None:
    warned = pylink.dlink(OBJECTS, archs="sm_75", toolkit=home)
    assert [diagnostic.kind for diagnostic in warned.diagnostics] == ["arch-not-found"] * 3
    with pytest.raises(pylink.LinkError):
        pylink.dlink(OBJECTS, archs="sm_75", toolkit=home, warning_as_error=True)
    plain = pylink.dlink(OBJECTS, archs="sm_90", form="fatbin", toolkit=home)
    small = pylink.dlink(OBJECTS, archs="sm_90", form="fatbin", toolkit=home, compress_mode="size")
    assert len(small.data) < len(plain.data)


def test_errors_name_the_architecture_that_failed_and_write_nothing(home: Path) -> None:
    log = io.StringIO()
    with pytest.raises(pylink.LinkError) as caught:
        pylink.dlink(["first.o"], archs=ARCHS, output="none.o", toolkit=home, log=log)
    assert [diagnostic.kind for diagnostic in caught.value.diagnostics] == ["undefined-reference"]
    assert log.getvalue().splitlines()[0].endswith("(target: sm_80)")
    assert not os.path.exists("none.o")


WRONG: dict[str, tuple[type[Exception], Callable[[], object]]] = {
    "one input": (TypeError, lambda: pylink.dlink("first.o", archs="sm_90")),
    "no architecture": (ValueError, lambda: pylink.dlink(OBJECTS, archs=[])),
    "a virtual one": (ValueError, lambda: pylink.dlink(OBJECTS, archs="compute_90")),
    "an unknown one": (ValueError, lambda: pylink.dlink(OBJECTS, archs=["sm_17"])),
    "one twice": (ValueError, lambda: pylink.dlink(OBJECTS, archs=["sm_90", "sm_90"])),
    "a file of one link": (TypeError, lambda: pylink.dlink(OBJECTS, archs="sm_90", Map="m")),
    "an option of the step": (
        TypeError,
        lambda: pylink.dlink(OBJECTS, archs="sm_90", report_arch=True),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_refused(home: Path, name: str) -> None:
    error, call = WRONG[name]
    with pytest.raises(error):
        call()


def test_the_machine_is_that_of_the_objects_or_the_one_given(folder: Path, home: Path) -> None:
    made = pylink.dlink(OBJECTS, archs="sm_90", host_machine="AARCH64", toolkit=home)
    assert int.from_bytes(made.data[18:20], "little") == 62
    empty = pylink.dlink([("plain.a", b"!<arch>\n")], archs="sm_90", host_machine="AARCH64")
    assert int.from_bytes(empty.data[18:20], "little") == 183
