"""The contenders of the benchmarks: each one links, so that large links can be measured."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import demo, oracle

from benchmarks.contenders import Contenders
from pylink.bench.contenders import API, CLI, COPY, NVJITLINK, NVLINK
from pylink.bench.processes import Launcher

pytestmark = oracle.needs_oracle


@pytest.fixture
def contenders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Contenders]:
    """The contenders over the demo's cubins."""
    directory = tmp_path / "cubins"
    directory.mkdir()
    names = [Path(shutil.copy(path, directory)).name for path in demo.cubins("sm_90a")]
    monkeypatch.chdir(directory)
    launcher = Launcher()
    contenders = Contenders(launcher, "90a", directory, names)
    yield contenders
    contenders.close()
    launcher.close()


def test_each_contender_writes_its_file(contenders: Contenders, tmp_path: Path) -> None:
    output = tmp_path / "linked" / "cubins.cubin"
    assert set(contenders.names_in_turn()) == {CLI, NVLINK, NVJITLINK, COPY}
    sizes = {}
    for contender in (*contenders.names_in_turn(), API):
        assert contenders.seconds(contender) > 0
        sizes[contender] = output.stat().st_size
    assert sizes[COPY] == sum(path.stat().st_size for path in demo.cubins("sm_90a"))
    assert sizes[CLI] == sizes[API]
    contenders.measure_api()
    assert set(contenders.peaks) == {CLI, NVLINK, NVJITLINK, API}
