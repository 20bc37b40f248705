"""The options of remarks, on the command line, behind -Xopt and in the Python interface."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import demo
from helpers.privileges import ordinary_user

import pylink
from pylink.command.cli import main
from pylink.diagnostics import Sink
from pylink.diagnostics.errors import LinkError
from pylink.options.model import Options
from pylink.options.parse import parse
from pylink.options.table import Value
from pylink.options.xopt import read_xopt
from pylink.remarks import read_remarks
from pylink.remarks.settings import Settings

CUBINS = [str(path) for path in demo.cubins("sm_90a")]
REMOVED = "removed _Z4nextRj"


def settings(*words: str) -> Settings:
    sink = Sink()
    return Settings(Options(parse(words, sink).values), sink)


def refused(*words: str) -> str:
    with pytest.raises(LinkError) as caught:
        settings(*words)
    return str(caught.value)


def words(text: str) -> tuple[dict[str, Value], dict[str, bool]]:
    values: dict[str, Value] = {}
    profuse = read_xopt(text.split(), values, Sink())
    return values, profuse


def test_every_option_is_read() -> None:
    read = settings(
        "--pass-remarks=a",
        "--pass-remarks-missed=b",
        "--pass-remarks-analysis=c",
        "--pass-remarks-filter=d",
        "--pass-remarks-output=out",
        "--pass-remarks-format=bitstream",
        "--pass-remarks-bitstream-version=0",
        "--pass-remarks-with-hotness",
        "--pass-remarks-hotness-threshold=64",
    )
    patterns = (read.passed, read.missed, read.analysis, read.written)
    assert [pattern and pattern.pattern for pattern in patterns] == ["a", "b", "c", "d"]
    assert (read.file, read.format, read.version) == ("out", "bitstream", 0)
    assert (read.hotness, read.threshold) == (True, 64)


def test_nothing_is_asked_for_by_default() -> None:
    read = settings()
    assert not read.are_needed()
    assert (read.format, read.version, read.hotness, read.threshold) == ("yaml", 1, False, 0)
    assert read.profuse == {}


@pytest.mark.parametrize("option", ["", "-missed", "-analysis", "-output"])
def test_an_empty_value_asks_for_nothing(option: str) -> None:
    assert not settings(f"--pass-remarks{option}=").are_needed()
    assert settings(f"--pass-remarks{option}=x").are_needed()


@pytest.mark.parametrize(
    "word",
    [
        "--pass-remarks-filter=x",
        "--pass-remarks-why-live=x",
        "--pass-remarks-format=bitstream",
        "--pass-remarks-with-hotness",
        "--pass-remarks-hotness-threshold=1",
    ],
)
def test_what_only_chooses_among_remarks_asks_for_none(word: str) -> None:
    assert not settings(word).are_needed()


def test_xopt_takes_the_same_options_with_one_dash_or_two() -> None:
    read = settings(
        "-Xopt",
        "-pass-remarks=a,-pass-remarks-missed=b",
        "-Xopt=--pass-remarks-hotness-threshold=0x40",
        "-Xopt",
        "-pass-remarks-with-hotness",
        "--Xopt=-pass-remarks-output,file.yaml",
    )
    assert read.passed is not None
    assert read.missed is not None
    assert (read.passed.pattern, read.missed.pattern) == ("a", "b")
    assert (read.threshold, read.hotness, read.file) == (64, True, "file.yaml")


def test_an_option_of_its_own_wins_over_xopt() -> None:
    read = settings("--pass-remarks-format=yaml", "-Xopt", "-pass-remarks-format=bitstream")
    assert read.format == "yaml"


def test_the_last_word_behind_xopt_counts() -> None:
    values, _ = words("-pass-remarks=a -pass-remarks=b")
    assert values == {"pass_remarks": "b"}
    values, _ = words("-pass-remarks-with-hotness=false")
    assert values == {"pass_remarks_with_hotness": False}


@pytest.mark.parametrize(
    ("text", "channels"),
    [
        ("-profusededup=true", {"profusededup": True}),
        ("-profusededup", {"profusededup": True}),
        ("-profusetwins=false", {"profusetwins": False}),
        ("-profusededup=1 -profusetwins=0", {"profusededup": True, "profusetwins": False}),
        ("-profusededup=true -profusededup=false", {"profusededup": False}),
    ],
)
def test_profuse_channels_are_switches(text: str, channels: dict[str, bool]) -> None:
    _, profuse = words(text)
    assert profuse == channels


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--pass-remarks-format=json"], "Unknown remark serializer format."),
        (["-Xopt", "-pass-remarks-format=json"], "Unknown remark serializer format."),
        (
            ["--pass-remarks=a("],
            "Invalid regular expression 'a(' passed to -pass-remarks: "
            "missing ), unterminated subpattern at position 1",
        ),
        (
            ["--pass-remarks-filter=*"],
            "Invalid regular expression '*' passed to -pass-remarks-filter: "
            "nothing to repeat at position 0",
        ),
        (
            ["--pass-remarks-bitstream-version=2"],
            "Value '2' is not defined for option 'pass-remarks-bitstream-version'",
        ),
        (
            ["-Xopt", "-pass-remarks-bitstream-version=2"],
            "Value '2' is not defined for option 'pass-remarks-bitstream-version'",
        ),
        (["--pass-remarks-hotness-threshold=many"], "'many': expected a number"),
        (["-Xopt", "-pass-remarks-hotness-threshold=many"], "'many': expected a number"),
        (["-Xopt", "-inline-threshold=3"], "Unknown option '-Xopt -inline-threshold=3'"),
        (["-Xopt", "-pass-remarks-colour=red"], "Unknown option '-Xopt -pass-remarks-colour=red'"),
        (["-Xopt", "-arch=sm_90"], "Unknown option '-Xopt -arch=sm_90'"),
        (["-Xopt", "pass-remarks=x"], "Unknown option '-Xopt pass-remarks=x'"),
        (["-Xopt", "---pass-remarks=x"], "Unknown option '-Xopt ---pass-remarks=x'"),
        (["-Xopt", "-profusegvn=true"], "Unknown option '-Xopt -profusegvn=true'"),
        (["-Xopt", "-profusededup=maybe"], "'maybe': expected true or false"),
        (["-Xopt", "-pass-remarks"], "argument expected after '-Xopt -pass-remarks'"),
        (["-Xopt"], "argument expected after '-Xopt'"),
    ],
)
def test_a_mistake_is_one_fatal_message(argv: list[str], message: str) -> None:
    assert refused(*argv).partition("\n")[0] == message


def link(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(["-arch=sm_90a", *CUBINS, "-o", "out.cubin", *words])
    shown = capfd.readouterr()
    return status, shown.out, shown.err


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_remarks_are_shown_and_change_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    assert link(capfd) == (0, "", "")
    plain = Path("out.cubin").read_bytes()
    status, out, err = link(capfd, "--pass-remarks=dce")
    assert (status, out) == (0, "")
    assert REMOVED in err
    assert all(line.startswith("remark: ") for line in err.splitlines())
    assert Path("out.cubin").read_bytes() == plain
    assert link(capfd, "-Xopt", "-pass-remarks=dce") == (0, "", err)
    assert link(capfd, "--pass-remarks=nosuchpass") == (0, "", "")


@pytest.mark.parametrize("format", ["yaml", "bitstream"])
@pytest.mark.parametrize("version", [0, 1])
def test_the_file_holds_what_the_terminal_shows(
    capfd: pytest.CaptureFixture[str], format: str, version: int
) -> None:
    words = [f"--pass-remarks{kind}=." for kind in ("", "-missed", "-analysis")]
    status, _, err = link(
        capfd,
        *words,
        "--pass-remarks-output=r",
        f"--pass-remarks-format={format}",
        f"--pass-remarks-bitstream-version={version}",
    )
    assert status == 0
    texts = [line.split(": ", 2)[2] for line in err.splitlines()]
    assert [remark.message for remark in read_remarks("r")] == texts
    assert texts


def test_standard_output_is_a_file_too(capfd: pytest.CaptureFixture[str]) -> None:
    words = ("--pass-remarks-filter=dce", "--pass-remarks-output")
    _, out, _ = link(capfd, *words, "-")
    link(capfd, *words, "r.yaml")
    assert out == Path("r.yaml").read_text()
    assert out.startswith("--- !")


def test_the_python_interface_has_the_options() -> None:
    result = pylink.link(
        CUBINS,
        arch="sm_90a",
        pass_remarks="dce",
        pass_remarks_output=Path("r.bin"),
        pass_remarks_format="bitstream",
        pass_remarks_with_hotness=True,
        Xopt=["-pass-remarks-filter=dce"],
    )
    assert any(REMOVED in diagnostic.message for diagnostic in result.diagnostics)
    remarks = list(read_remarks("r.bin"))
    assert {remark.pass_name for remark in remarks} == {"dce"}
    assert any(remark.hotness for remark in remarks)


def test_a_link_that_fails_leaves_the_file_as_it_was(capfd: pytest.CaptureFixture[str]) -> None:
    Path("r.yaml").write_text("before")
    Path("bad.cubin").write_bytes(b"no cubin")
    status, _, _ = link(capfd, "bad.cubin", "--pass-remarks-output=r.yaml")
    assert status != 0
    assert Path("r.yaml").read_text() == "before"
    assert sorted(os.listdir()) == ["bad.cubin", "r.yaml"]


@pytest.mark.parametrize("name", ["missing/r.yaml", ".", "nul\0byte"])
def test_a_file_that_cannot_be_opened_costs_no_link(
    capfd: pytest.CaptureFixture[str], name: str
) -> None:
    status, _, err = link(capfd, f"--pass-remarks-output={name}")
    assert status == 1
    assert err.count("\n") == 2
    assert "Could not open output file" in err
    assert not Path("out.cubin").exists()


def test_a_folder_without_permission_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    Path("locked").mkdir(mode=0o500)
    with ordinary_user():
        status, _, err = link(capfd, "--pass-remarks-output=locked/r.yaml")
    assert (status, err) == (
        1,
        "pylink fatal   : Could not open output file 'locked/r.yaml'\n"
        "pylink note    : Permission denied\n",
    )


@pytest.mark.parametrize("format", ["yaml", "bitstream"])
@pytest.mark.parametrize("version", [0, 1])
def test_a_full_disk_is_one_error(
    capfd: pytest.CaptureFixture[str], format: str, version: int
) -> None:
    status, _, err = link(
        capfd,
        "--pass-remarks-output=/dev/full",
        f"--pass-remarks-format={format}",
        f"--pass-remarks-bitstream-version={version}",
    )
    assert status == 255
    assert err == (
        "pylink error   : Writing remarks to '/dev/full' failed: No space left on device\n"
    )
    assert Path("out.cubin").exists()


def started(redirections: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A link whose streams a shell has closed or redirected."""
    command = [sys.executable, "-m", "pylink", "-arch=sm_90a", *CUBINS, "-o", "out.cubin", *words]
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {redirections}', "sh", *command],
        env={**os.environ, "PYTHONPATH": str(Path(pylink.__file__).parent.parent)},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("closed", ["2>&-", "2>/dev/full", ">&- 2>&-"])
def test_a_terminal_that_takes_nothing_costs_the_remarks_alone(closed: str) -> None:
    done = started(closed, "--pass-remarks=dce", "--pass-remarks-output=r.yaml")
    assert done.returncode == 0
    assert Path("out.cubin").exists()
    assert any(remark.pass_name == "dce" for remark in read_remarks("r.yaml"))


def test_standard_output_that_is_closed_is_an_error() -> None:
    done = started(">&-", "--pass-remarks-output=-")
    assert done.returncode == 255
    assert done.stderr.startswith("pylink error   : Writing remarks to '-' failed: ")
    assert done.stderr.count("\n") == 1
