"""When the profuse channels speak, and what they say of recorded cubins."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pylink.command.cli import main
from pylink.dedup import FoldResult, MercuryObject, fold
from pylink.remarks.profuse import DEDUP, TWINS, WIZARD, enabled_channels

WEAK = Path(__file__).parents[1] / "golden/100/weak"
OLDER = Path(__file__).parents[1] / "golden/80/weak"
COUNTS = (
    "memcmp_calls 0, bytes_compared 0, bytes_offered 0, twin_probes 0, prefilter_hits 0, "
    "false_positives 0, digests 0, digest_bytes 0"
)


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(WIZARD, raising=False)
    for name in ("m0.cubin", "m1.cubin"):
        shutil.copy(WEAK / name, tmp_path)
        shutil.copy(OLDER / name, tmp_path / f"old.{name}")
    monkeypatch.chdir(tmp_path)


def link(*words: str, arch: str = "100", prefix: str = "") -> int:
    inputs = (f"{prefix}m0.cubin", f"{prefix}m1.cubin")
    return main([f"-arch=sm_{arch}", *inputs, "-o", "out.cubin", *words])


def said(capfd: pytest.CaptureFixture[str]) -> list[str]:
    captured = capfd.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


@pytest.mark.parametrize(
    ("wizard", "words", "speaking"),
    [
        ("", {}, set()),
        ("0", {}, set()),
        ("1", {}, {TWINS}),
        ("1", {TWINS: False}, set()),
        ("", {TWINS: True}, {TWINS}),
        ("", {DEDUP: True}, {DEDUP}),
        ("1", {DEDUP: True}, {DEDUP, TWINS}),
        ("1", {DEDUP: False}, {TWINS}),
    ],
)
def test_when_channels_speak(
    monkeypatch: pytest.MonkeyPatch, wizard: str, words: dict[str, bool], speaking: set[str]
) -> None:
    monkeypatch.setenv(WIZARD, wizard)
    assert enabled_channels(words) == speaking


def test_links_are_silent_by_default(capfd: pytest.CaptureFixture[str]) -> None:
    assert link() == 0
    assert said(capfd) == []


def test_each_comparison_each_file_and_the_sum(capfd: pytest.CaptureFixture[str]) -> None:
    assert link("-Xopt", "-profusededup=true") == 0
    assert said(capfd) == [
        "profusededup: m1.cubin against m0.cubin: rejected in stage 1 with 17: "
        ".nv.capmerc.text.weigh has 38 bytes, that of the reference 22: the comparison "
        f"would read outside the entry of the reference; pairs 1, {COUNTS}",
        "profusededup: m0.cubin: kept",
        "profusededup: m1.cubin: kept",
        f"profusededup: 2 files, pairs 1, {COUNTS}",
    ]


def test_each_section_and_its_leader(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(WIZARD, "1")
    assert link() == 0
    lines = said(capfd)
    assert lines[0] == (
        "profusetwins: .nv.capmerc.text.weigh of m0.cubin, 22 bytes: no equal one before it"
    )
    assert all(line.startswith("profusetwins: .nv.") for line in lines)
    assert link("-Xopt", "-profusetwins=false") == 0
    assert said(capfd) == []


@pytest.mark.parametrize(
    ("words", "arch", "prefix", "reason"),
    [
        ((), "80", "old.", "sm_80 has no Mercury sections"),
        (("-r",), "100", "", "-r folds nothing"),
        (("--merc-dedup=off",), "100", "", "--merc-dedup=off folds nothing"),
    ],
)
def test_links_that_compare_nothing_say_why(
    capfd: pytest.CaptureFixture[str], words: tuple[str, ...], arch: str, prefix: str, reason: str
) -> None:
    both = "-profusededup=true,-profusetwins=true"
    assert link("-Xopt", both, *words, arch=arch, prefix=prefix) == 0
    assert said(capfd) == [f"profusededup: {reason}", f"profusetwins: {reason}"]


def test_what_is_asked_for_is_compared_once(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link keeps its comparisons: traces, channels and remarks say what these decided."""
    compared: list[int] = []

    def counted(items: list[MercuryObject]) -> FoldResult:
        compared.append(len(items))
        return fold(items)

    monkeypatch.setattr("pylink.phases.fold.fold", counted)
    monkeypatch.setattr("pylink.dedup.analysis.fold", None)
    assert link() == 0
    assert compared == []  # nothing ties, and nobody asked
    both = "-profusededup=true,-profusetwins=true"
    assert link("-edbg=1", "-Xopt", both, "--pass-remarks-missed=merc-dedup") == 0
    assert compared == [2]
    lines = said(capfd)
    for word in ("merc-dedup: ", "profusededup: ", "profusetwins: ", "remark: "):
        assert any(word in line for line in lines), (word, lines)
    assert link("--pass-remarks=dce") == 0
    assert compared == [2]


def test_the_output_is_the_same(capfd: pytest.CaptureFixture[str]) -> None:
    link()
    plain = Path("out.cubin").read_bytes()
    link("-Xopt", "-profusededup,-profusetwins")
    assert Path("out.cubin").read_bytes() == plain
    assert said(capfd) != []
