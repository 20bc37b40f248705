"""Which ptxas a link starts."""

from __future__ import annotations

import re
import sys
import sysconfig
from pathlib import Path

import pytest
from helpers.fake_tool import fake_tool

from pylink.options.model import Options
from pylink.subtools import programs
from pylink.subtools.programs import find_ptxas


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """A ptxas in every place, by the name of the place."""
    site = tmp_path / "site"
    found = {
        "wheel": fake_tool(site / "nvidia" / "cu13" / "bin" / "ptxas", ""),
        "CUDA_HOME": fake_tool(tmp_path / "home" / "bin" / "ptxas", ""),
        "CUDA_PATH": fake_tool(tmp_path / "path" / "bin" / "ptxas", ""),
        "PATH": fake_tool(tmp_path / "bin" / "ptxas", ""),
    }
    programs.version_text("/no/such/program")  # loads what starts programs, from the module path
    monkeypatch.setattr(sys, "path", [str(site)])
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "path"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return found


def test_the_places_in_their_order(places: dict[str, Path]) -> None:
    for place in ("wheel", "CUDA_HOME", "CUDA_PATH", "PATH"):
        assert find_ptxas(Options({})) == str(places[place])
        places[place].unlink()
    assert find_ptxas(Options({})) is None


def test_a_file_that_cannot_be_executed_is_passed_over(places: dict[str, Path]) -> None:
    places["wheel"].chmod(0o644)
    assert find_ptxas(Options({})) == str(places["CUDA_HOME"])


def test_the_option_comes_first_and_may_name_a_directory(places: dict[str, Path]) -> None:
    named = str(places["PATH"])
    assert find_ptxas(Options({"ptxas_path": named})) == named
    assert find_ptxas(Options({"ptxas_path": str(places["PATH"].parent)})) == named
    # What does not exist is not replaced by another: starting it will fail, and say so.
    assert find_ptxas(Options({"ptxas_path": "/no/such"})) == "/no/such"


def test_the_newest_wheel_comes_first(places: dict[str, Path]) -> None:
    site = places["wheel"].parents[2]
    for name in ("cu9", "cu14", "cuda_nvcc", "cudnn", "cu13x"):
        (site / name).mkdir()
    names = [Path(path).name for path in programs.wheel_directories()]
    assert names == ["cu14", "cu13", "cu9", "cuda_nvcc"]


def test_no_wheels_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "missing")])
    assert programs.wheel_directories() == []


def test_relative_places_and_the_working_directory_are_passed_over(
    places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = places["PATH"].parents[1]
    monkeypatch.chdir(root / "site")
    monkeypatch.setattr(sys, "path", ["", ".", str(root / "site"), "../site"])
    monkeypatch.setenv("CUDA_HOME", "../home")
    monkeypatch.setenv("CUDA_PATH", "../path")
    monkeypatch.setenv("PATH", ":../bin::.:")
    assert find_ptxas(Options({})) is None
    # What the user names is relative to the working directory, and not looked for in PATH.
    assert find_ptxas(Options({"ptxas_path": "../bin"})) == str(places["PATH"])
    assert find_ptxas(Options({"ptxas_path": "ptxas"})) == str(root / "site" / "ptxas")


def test_a_site_directory_stays_where_it_is_the_working_directory(
    places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    site = str(places["wheel"].parents[3])
    monkeypatch.chdir(site)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: site)
    assert find_ptxas(Options({})) == str(places["wheel"])


def test_a_deleted_working_directory(
    places: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert find_ptxas(Options({})) == str(places["wheel"])
    monkeypatch.chdir(tmp_path)


def test_the_ptxas_of_the_release_asked_for_comes_first(places: dict[str, Path]) -> None:
    for place, release in (("wheel", "13.5"), ("CUDA_HOME", "13.0"), ("PATH", "13.2")):
        fake_tool(places[place], f"echo 'Cuda compilation tools, release {release}, V{release}.1'")
    for release, place in (("13.5", "wheel"), ("13.0", "CUDA_HOME"), ("13.2", "PATH")):
        assert find_ptxas(Options({"nvlink_version": release})) == str(places[place])
        assert find_ptxas(Options({}, toolkit=release)) == str(places[place])
    # Another is better than none, and so is one that does not tell.
    assert find_ptxas(Options({"nvlink_version": "13.4"})) == str(places["wheel"])
    assert find_ptxas(Options({})) == str(places["wheel"])
    named = str(places["PATH"])
    assert find_ptxas(Options({"nvlink_version": "13.5", "ptxas_path": named})) == named


@pytest.mark.parametrize(
    "body", ["exit 1", "echo 13.2", "echo release 13.2; exit 1", "echo release x.y"]
)
def test_a_tool_may_not_tell_its_release(body: str, tmp_path: Path) -> None:
    assert programs.tool_release(str(fake_tool(tmp_path / "ptxas", body))) is None
    assert programs.tool_release(str(tmp_path / "nothing")) is None


def test_the_program_beside_this_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python3"))
    assert programs.find_own_program() is None
    own = fake_tool(tmp_path / "pylink", "")
    assert programs.find_own_program() == str(own)
    own.chmod(0o644)
    assert programs.find_own_program() is None


def test_programs_are_searched_for_in_one_place() -> None:
    """The server looks for what it was started as itself."""
    package = Path(programs.__file__).parents[1]
    search = re.compile(r"\bshutil\.which\(|\bget_exec_path\(")
    found = [
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if search.search(path.read_text(encoding="utf-8"))
    ]
    assert sorted(found) == ["serve/command.py", "subtools/programs.py"]
