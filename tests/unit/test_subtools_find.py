"""Which ptxas a link starts."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers.fake_tool import fake_tool

from pylink.options import Options
from pylink.subtools import find
from pylink.subtools.find import find_ptxas


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """A ptxas in every place, by the name of the place."""
    wheel = tmp_path / "site" / "nvidia"
    found = {
        "wheel": fake_tool(wheel / "cu13" / "bin" / "ptxas", ""),
        "CUDA_HOME": fake_tool(tmp_path / "home" / "bin" / "ptxas", ""),
        "CUDA_PATH": fake_tool(tmp_path / "path" / "bin" / "ptxas", ""),
        "PATH": fake_tool(tmp_path / "bin" / "ptxas", ""),
    }
    spec = SimpleNamespace(submodule_search_locations=[str(wheel)])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
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
    names = [Path(path).name for path in find.wheel_directories()]
    assert names == ["cu14", "cu13", "cu9", "cuda_nvcc"]


def test_no_wheels_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert find.wheel_directories() == []
