"""`pylink remarks`: conversions, counts, and what it says of files that it cannot read."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from helpers.remark_samples import SAMPLE, YAML, bitstream_reference, write_and_read

from pylink.command.cli import main
from pylink.remarks import write_remarks
from pylink.remarks.container import LLVM_19, LLVM_22


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(["remarks", *words])
    shown = capfd.readouterr()
    return status, shown.out, shown.err


@pytest.mark.parametrize(
    ("format", "version"), [("yaml", 0), ("bitstream", LLVM_19), ("bitstream", LLVM_22)]
)
def test_any_file_is_shown_as_yaml(
    capfd: pytest.CaptureFixture[str], folder: Path, format: str, version: int
) -> None:
    write_and_read(folder, SAMPLE, format, version)
    assert run(capfd, "remarks.out") == (0, YAML, "")


@pytest.mark.parametrize("version", [LLVM_19, LLVM_22])
@pytest.mark.parametrize("source", [LLVM_19, LLVM_22])
def test_containers_are_converted_also_in_place(
    capfd: pytest.CaptureFixture[str], folder: Path, source: int, version: int
) -> None:
    write_and_read(folder, SAMPLE, "bitstream", source)
    words = ("--format=bitstream", f"--bitstream-version={version}", "-o", "remarks.out")
    assert run(capfd, "remarks.out", *words) == (0, "", "")
    assert Path("remarks.out").read_bytes() == bitstream_reference(SAMPLE, version)


def test_remarks_are_counted(capfd: pytest.CaptureFixture[str], folder: Path) -> None:
    write_and_read(folder, [*SAMPLE, SAMPLE[0]], "bitstream")
    assert run(capfd, "--count", "remarks.out") == (
        0,
        "         1 merc-dedup Missed SectionRejected\n"
        "         2 merc-dedup Passed SectionFolded\n"
        "         1 p AnalysisAliasing n\n"
        "         1 p AnalysisFPCommute n\n"
        "         1 p Failure n\n"
        "         1 regcount Analysis Raised\n"
        "         7 in all\n",
        "",
    )


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"RMRK", "bad: byte 0x4: the block info block is missing"),
        (b"RMRK" + b"\xff" * 64, "bad: byte 0x4: no block starts here"),
        (b"--- !Passed\n", "bad: line 1: document root is not of mapping type"),
        (b"\x7fELF\x02\x01", "bad: byte 0x0: "),
        (b"\xff\xfe\x00", "bad: "),
        (None, "bad: No such file or directory"),
    ],
)
@pytest.mark.parametrize("words", [("--count",), ("-o", "out"), ()])
def test_what_is_no_file_of_remarks_is_one_line(
    capfd: pytest.CaptureFixture[str], data: bytes | None, reason: str, words: tuple[str, ...]
) -> None:
    if data is not None:
        Path("bad").write_bytes(data)
    status, out, err = run(capfd, "bad", *words)
    assert (status, out) == (1, "")
    assert err.startswith(f"pylink remarks: {reason}")
    assert err.count("\n") == 1
    assert not Path("out").exists()


def test_a_file_that_cannot_be_written_is_one_line(
    capfd: pytest.CaptureFixture[str], folder: Path
) -> None:
    write_and_read(folder, SAMPLE, "yaml")
    for target, reason in {
        "/dev/full": "No space left on device",
        "missing/out": "No such file or directory",
        ".": "Is a directory",
    }.items():
        status, _, err = run(capfd, "remarks.out", "-o", target)
        assert status == 1
        assert err == f"pylink remarks: {target}: {reason}\n"


def test_yaml_without_its_library_says_what_to_install(
    capfd: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_and_read(folder, SAMPLE, "yaml")
    monkeypatch.setitem(sys.modules, "yaml", None)
    status, _, err = run(capfd, "remarks.out")
    assert (status, err) == (
        1,
        "pylink remarks: reading YAML needs the package PyYAML: "
        "pip install 'pylink-cuda[remarks]'\n",
    )


def test_a_format_that_does_not_exist_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"^Unknown remark serializer format\.$"):
        write_remarks(folder / "out", SAMPLE, format="json")
    with pytest.raises(ValueError, match="container version 2 is unknown"):
        write_remarks(folder / "out", SAMPLE, format="bitstream", version=2)
    assert not (folder / "out").exists()
