"""What folding saves: one number, the difference of two files, wherever pylink says it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers import demo

import pylink
from pylink import remarks
from pylink.dedup import MercuryObject, fold
from pylink.dedup.command import main
from pylink.dedup.saving import saved_by_cubins
from pylink.report import read_report

CUBINS = demo.cubins("sm_100")


def difference(cubins: list[Path]) -> int:
    """How much shorter the file is with folding."""
    sizes = [
        len(pylink.link(cubins, arch="sm_100", merc_dedup=fold).image) for fold in ("off", "on")
    ]
    return sizes[0] - sizes[1]


@pytest.fixture(scope="module", params=["demo", "copies"])
def cubins(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A program in which a little folds, and one whose modules are all there twice."""
    if request.param == "demo":
        return CUBINS
    folder = tmp_path_factory.mktemp("copies")
    made = []
    for cubin in CUBINS:
        made += [cubin, folder / cubin.name]
        made[-1].write_bytes(cubin.read_bytes())
    return made


def test_every_tool_says_what_the_files_differ_by(
    cubins: list[Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    expected = difference(CUBINS) if cubins == CUBINS else None
    names = [str(name) for name in cubins]
    assert main(["--json", *names]) == 0
    value = json.loads(capfd.readouterr().out)
    assert value["payload_bytes"] > 0
    assert main(names) == 0
    shown = capfd.readouterr().out
    if expected is None:
        # Every strong symbol is there twice: no linker makes a file of them.
        assert value["saved_bytes"] is None
        assert "do not link" in shown
        return
    assert expected == 848
    assert value["saved_bytes"] == expected
    assert f"loses {expected} bytes" in shown
    report, written = tmp_path / "link.ncu-rep", tmp_path / "remarks.yaml"
    pylink.link(cubins, arch="sm_100", profile=report, pass_remarks_output=written)
    told = [
        action.number("dedup__bytes_saved.sum")
        for action in read_report(report).actions
        if "dedup__bytes_saved.sum" in action.metrics
    ]
    assert set(told) == {expected}
    said = [
        value
        for remark in remarks.read_remarks(written)
        for key, value, *_ in remark.args
        if key == "BytesSaved"
    ]
    assert said == [str(expected)]


def test_undefined_symbols_do_not_hide_what_is_saved() -> None:
    pair = [name for name in CUBINS if name.stem in ("smoothing_a", "smoothing_b")]
    assert saved_by_cubins([(name.name, name.read_bytes()) for name in pair], "sm_100") == (
        difference(pair)
    )
    # Of the last module the others need what is not an input here.
    rest = [(name.name, name.read_bytes()) for name in CUBINS if name.stem != "random"]
    assert (saved_by_cubins(rest, "sm_100") or 0) > 0


def test_objects_without_mercury_sections_fold_nothing() -> None:
    empty, full = MercuryObject(name="a"), MercuryObject([b"1"], [(".nv.merc.x", 1, 0, 1)], [], "b")
    for prefilter in ("none", "xxh3"):
        result = fold([empty, full, empty, full, empty], prefilter=prefilter)
        assert result.reference == [None, None, None, 1, None]
        assert result.verdicts[2] is None
        assert result.stats.pairs == 1


def test_a_trace_is_of_the_link_alone(capfd: pytest.CaptureFixture[str]) -> None:
    """What folding saves is found by merging twice more, of which -edbg says nothing."""
    result = pylink.link(CUBINS, arch="sm_100", edbg=1, pass_remarks_analysis="merc-dedup")
    assert any(diagnostic.kind == "pass-remark-analysis" for diagnostic in result.diagnostics)
    lines = capfd.readouterr().err.splitlines()
    assert [line for line in lines if "folds into" in line]
    assert sum(line.startswith("link input ") for line in lines) == len(CUBINS)
