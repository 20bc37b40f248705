"""Which compilers a link with LTO-IR takes: one set, of one release, out of planted folders."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from helpers.fake_tool import fake_tool

from pylink.diagnostics import Sink
from pylink.diagnostics.errors import LinkError
from pylink.jitlink import real
from pylink.options.model import Options
from pylink.options.table import Value
from pylink.subtools import compilers, programs

ARCH = "sm_90"


class Machine:
    """Toolkits and wheels in a folder, and nothing else where a link would look."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.wheels: list[str] = []
        for module in (programs, compilers):
            monkeypatch.setattr(module, "wheel_directories", lambda: self.wheels)
        monkeypatch.setattr(compilers, "SYSTEM_TOOLKIT", str(root / "usr"))
        monkeypatch.setattr(compilers, "SYSTEM_LIBRARIES", str(root / "usr/lib/*-linux-gnu"))
        for variable in ("CUDA_HOME", "CUDA_PATH", "PATH", "LD_LIBRARY_PATH"):
            monkeypatch.setenv(variable, "")
        self.monkeypatch = monkeypatch

    def ptxas(self, tree: str, release: str) -> str:
        said = f"echo 'Cuda compilation tools, release {release}, V{release}.88'"
        return str(fake_tool(self.root / tree / "bin" / "ptxas", said))

    def library(self, folder: str, release: str, major: str = "13") -> str:
        """An nvJitLink library: names of every release of the major one, up to its own."""
        path = self.root / folder / f"libnvJitLink.so.{major}"
        path.parent.mkdir(parents=True, exist_ok=True)
        first, last = map(int, release.split("."))
        names = [f"__nvJitLinkCreate_{first}_{minor}" for minor in range(last + 1)]
        path.write_bytes(b"\x7fELF" + bytes(100) + "\0".join(["", *names, ""]).encode())
        return str(path)

    def wheel(self, tree: str) -> None:
        self.wheels.append(str(self.root / tree))

    def toolkit(self, tree: str) -> str:
        """A toolkit whose nvvm folder can be named."""
        (self.root / tree / "nvvm" / "lib64").mkdir(parents=True, exist_ok=True)
        return str(self.root / tree / "nvvm")

    def choose(self, **options: Value) -> tuple[str, str | None]:
        chosen = compilers.choose_compilers(Options({"arch": ARCH, **options}), Sink())
        return chosen.nvjitlink, chosen.ptxas


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_of_one_release_where_there_are_several(machine: Machine) -> None:
    """The toolkit in PATH has no nvJitLink; the environment has a whole set of another release."""
    machine.ptxas("cuda", "13.0")
    machine.monkeypatch.setenv("PATH", str(machine.root / "cuda" / "bin"))
    machine.wheel("site/nvidia/cu13")
    tool, library = (
        machine.ptxas("site/nvidia/cu13", "13.5"),
        machine.library("site/nvidia/cu13/lib", "13.5"),
    )
    assert machine.choose(nvvmpath=machine.toolkit("cuda")) == (library, tool)


def test_parts_of_a_set_may_lie_apart(machine: Machine) -> None:
    """The toolkit's ptxas and its release of nvJitLink in CUDA_HOME, beside a newer nvJitLink."""
    tool = machine.ptxas("cuda", "13.0")
    machine.monkeypatch.setenv("PATH", str(machine.root / "cuda" / "bin"))
    machine.wheel("site/nvidia/cu13")
    machine.library("site/nvidia/cu13/lib", "13.5")
    machine.monkeypatch.setenv("CUDA_HOME", str(machine.root / "home"))
    library = machine.library("home/lib64", "13.0")
    assert machine.choose() == (library, tool)


def test_the_release_that_is_followed_goes_first(machine: Machine) -> None:
    sets = {}
    for release in ("13.1", "13.0", "13.5"):
        tree = f"site{release}/nvidia/cu13"
        machine.wheel(tree)
        tool = machine.ptxas(tree, release)
        sets[release] = (machine.library(f"{tree}/lib", release), tool)
    assert machine.choose() == sets["13.1"]
    for asked, taken in (("13.0", "13.0"), ("13.5", "13.5"), ("13.2", "13.5"), ("12.9", "13.0")):
        assert machine.choose(nvlink_version=asked) == sets[taken], asked
    assert machine.choose(ptxas_path=sets["13.5"][1]) == sets["13.5"]


def test_an_older_nvjitlink_and_a_newer_ptxas_work_where_nothing_else_is(machine: Machine) -> None:
    machine.wheel("site/nvidia/cu13")
    tool = machine.ptxas("site/nvidia/cu13", "13.5")
    library = machine.library("site/nvidia/cu13/lib", "13.1")
    assert machine.choose() == (library, tool)


@pytest.mark.parametrize(("ptxas", "nvjitlink"), [("13.0", "13.5"), ("12.9", "13.0")])
def test_a_pair_that_cannot_work_is_named_before_anything_runs(
    machine: Machine, ptxas: str, nvjitlink: str
) -> None:
    machine.wheel("site/nvidia/cu13")
    tool = machine.ptxas("site/nvidia/cu13", ptxas)
    library = machine.library("site/nvidia/cu13/lib", nvjitlink)
    with pytest.raises(LinkError) as caught:
        machine.choose()
    (said,) = caught.value.diagnostics
    assert said.message == (
        "Link-time optimization needs nvJitLink, and ptxas of the same release; found nvJitLink "
        f"{nvjitlink} ({library}), ptxas {ptxas} ({tool}). Install one of them in the release of "
        f"the other: pip install 'nvidia-cuda-nvcc=={nvjitlink}.*' or "
        f"'nvidia-nvjitlink=={ptxas}.*'"
    )


def test_what_is_missing_is_named(machine: Machine) -> None:
    with pytest.raises(LinkError, match="needs nvJitLink, which was not found"):
        machine.choose()
    machine.wheel("site/nvidia/cu13")
    library = machine.library("site/nvidia/cu13/lib", "13.1")
    with pytest.raises(LinkError, match="needs ptxas, which was not found"):
        machine.choose()
    assert machine.choose(emit_ptx=True) == (library, None)


def test_libnvvm_is_of_the_trees_of_the_set(machine: Machine) -> None:
    for release in ("13.0", "13.5"):
        tree = f"site{release}/nvidia/cu13"
        machine.wheel(tree)
        machine.ptxas(tree, release)
        machine.library(f"{tree}/lib", release)
        (machine.root / tree / "lib" / "libnvvm.so.4").touch()
    chosen = compilers.choose_compilers(Options({"arch": ARCH, "nvlink_version": "13.5"}), Sink())
    assert chosen.nvvm == str(machine.root / "site13.5/nvidia/cu13/lib/libnvvm.so.4")


def test_nvjitlink_is_looked_for_in_one_way(machine: Machine) -> None:
    """A link of LTO-IR and what stands in nvJitLink's place find the same libraries, by order."""
    nvvm = machine.toolkit("named")
    places = [machine.library("named/lib64", "13.1")]
    machine.wheel("site/nvidia/cu13")
    places.append(machine.library("site/nvidia/cu13/lib", "13.1"))
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        machine.monkeypatch.setenv(variable, str(machine.root / variable))
    places.append(machine.library("CUDA_HOME/targets/x86_64-linux/lib", "13.1"))
    places.append(machine.library("CUDA_PATH/lib64", "13.1"))
    places.append(machine.library("usr/lib64", "13.1"))
    machine.monkeypatch.setenv("LD_LIBRARY_PATH", f"relative:{machine.root}/loader")
    places.append(machine.library("loader", "13.1"))
    places.append(machine.library("site/nvidia/nvjitlink/lib", "12.9", "12"))
    places.append(machine.library("usr/lib/x86_64-linux-gnu", "13.1"))
    assert compilers.find_nvjitlink(nvvm) == places
    assert compilers.find_nvjitlink() == places[1:]
    assert real.find(13) == places[1]
    assert real.find(12) == places[6]
    assert compilers.find_nvjitlink("a\0b") == places[1:]


def test_a_file_of_two_names_is_one_library(machine: Machine) -> None:
    path = machine.library("usr/lib64", "13.1")
    os.symlink(path, f"{path}.1.115")
    os.symlink(machine.root / "usr" / "lib64", machine.root / "usr" / "lib")
    assert compilers.find_nvjitlink() == [path]


def test_a_library_that_does_not_tell_its_release_is_of_the_release_of_ptxas(
    machine: Machine,
) -> None:
    machine.wheel("site/nvidia/cu13")
    tool = machine.ptxas("site/nvidia/cu13", "13.0")
    path = Path(machine.library("site/nvidia/cu13/lib", "13.0"))
    path.write_bytes(b"nothing")
    assert compilers.library_release(str(path)) is None
    assert machine.choose() == (str(path), tool)
