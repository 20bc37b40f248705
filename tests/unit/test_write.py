"""Writing the output: whole or not at all, and never over an input."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from helpers.cubin_builder import one_kernel
from helpers.privileges import ordinary_user

import pylink
from pylink.command.cli import main
from pylink.files.atomic import WholeFile

ARCH = "-arch=sm_80"


@pytest.fixture
def cubin(tmp_path: Path) -> Path:
    path = tmp_path / "in" / "a.cubin"
    path.parent.mkdir()
    path.write_bytes(one_kernel().build())
    return path


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An empty directory for outputs."""
    path = tmp_path / "out"
    path.mkdir()
    return path


def test_output_is_an_input(cubin: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = cubin.read_bytes()
    link = cubin.parent / "link"
    link.symlink_to(cubin)
    os.link(cubin, cubin.parent / "hard")
    for name in (cubin, link, cubin.parent / "hard"):
        assert main([ARCH, str(cubin), "-o", str(name)]) == 1
        assert f"Output file '{cubin}' would overwrite an input" in capsys.readouterr().err
    assert cubin.read_bytes() == before


@pytest.mark.parametrize("name", ["", "missing/o", "file/o"])
def test_places_that_cannot_be_written(
    cubin: Path, place: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "file").write_text("kept")
    assert main([ARCH, str(cubin), "-o", str(place / name)]) == 1
    assert f"Could not open output file '{place / name}'" in capsys.readouterr().err
    assert [path.name for path in place.iterdir()] == ["file"]
    assert (place / "file").read_text() == "kept"


@pytest.mark.parametrize(
    "option",
    [
        *("Map", "depfile", "profile", "time-trace", "profile-aprof", "sarif-output", "diag-log"),
        *("reproduce", "register-link-binaries", "pass-remarks-output"),
    ],
)
def test_all_outputs_in_a_missing_directory_have_one_message(
    cubin: Path, place: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = place / "missing" / "file"
    assert main([ARCH, str(cubin), "-o", str(place / "o"), f"--{option}={path}"]) == 1
    assert capsys.readouterr().err == (
        f"pylink fatal   : Could not open output file '{path}'\n"
        "pylink note    : No such file or directory\n"
    )


def test_a_file_without_permission(cubin: Path, place: Path) -> None:
    (place / "o").write_text("kept")
    (place / "o").chmod(0o444)
    image = cubin.read_bytes()
    with ordinary_user(), pytest.raises(pylink.LinkError, match="Could not open output file"):
        pylink.link([image], arch="sm_80", output=place / "o")
    assert (place / "o").read_text() == "kept"


def test_full_device(cubin: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([ARCH, str(cubin), "-o", "/dev/full"]) == 1
    assert capsys.readouterr().err == (
        "pylink fatal   : Writing '/dev/full' failed: No space left on device\n"
    )
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


@pytest.mark.parametrize("existing", [True, False])
def test_full_disk(
    cubin: Path, place: Path, monkeypatch: pytest.MonkeyPatch, existing: bool
) -> None:
    output = place / "o"
    if existing:
        output.write_text("kept")

    written = WholeFile.write

    def full(file: WholeFile, data: bytes) -> None:
        written(file, data[:100])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(WholeFile, "write", full)
    with pytest.raises(pylink.LinkError) as caught:
        pylink.link([cubin], arch="sm_80", output=output)
    assert str(caught.value) == f"Writing '{output}' failed: No space left on device"
    assert [path.read_text() for path in place.iterdir()] == (["kept"] if existing else [])


def test_full_disk_under_the_other_outputs(
    cubin: Path, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = place / "kept"
    file.write_text("kept")

    def full(written: WholeFile, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(WholeFile, "write", full)
    with pytest.raises(pylink.LinkError, match="No space left on device"):
        pylink.link([cubin], arch="sm_80", register_link_binaries=str(file))
    assert main(["-ghls=lcs-aug", "-o", str(file)]) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert [path.read_text() for path in place.iterdir()] == ["kept"]


def test_an_interrupted_write_leaves_nothing(
    cubin: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(file: WholeFile, data: bytes) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(WholeFile, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pylink.link([cubin], arch="sm_80", output=place / "o")
    assert list(place.iterdir()) == []


def test_a_failed_link_keeps_the_file_of_the_last_one(cubin: Path, place: Path) -> None:
    output = place / "o"
    image = pylink.link([cubin], arch="sm_80", output=output).image
    cubin.write_bytes(cubin.read_bytes()[:-1])
    with pytest.raises(pylink.LinkError):
        pylink.link([cubin], arch="sm_80", output=output)
    assert output.read_bytes() == image
    assert list(place.iterdir()) == [output]


def test_an_existing_file_keeps_its_permissions_and_a_link_its_target(
    cubin: Path, place: Path
) -> None:
    output = place / "o"
    output.write_text("old")
    output.chmod(0o640)
    (place / "link").symlink_to("o")
    image = pylink.link([cubin], arch="sm_80", output=place / "link").image
    assert output.read_bytes() == image
    assert stat.S_IMODE(output.stat().st_mode) == 0o640
    assert (place / "link").is_symlink()


def test_a_new_file_obeys_the_mask(cubin: Path, place: Path) -> None:
    before = os.umask(0o027)
    try:
        pylink.link([cubin], arch="sm_80", output=place / "o")
    finally:
        os.umask(before)
    assert stat.S_IMODE((place / "o").stat().st_mode) == 0o640


def test_pipe(cubin: Path, place: Path) -> None:
    path = place / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        image = pylink.link([cubin], arch="sm_80", output=path).image
        assert os.read(reader, len(image) + 1) == image
    finally:
        os.close(reader)
    assert list(place.iterdir()) == [path]


def test_write_if_changed_leaves_equal_files_alone(cubin: Path, place: Path) -> None:
    output = place / "o"
    words = [ARCH, str(cubin), "-o", str(output), "--write-if-changed"]
    assert main(words) == 0
    image = output.read_bytes()
    os.utime(output, (1, 1))
    assert main(words) == 0
    assert output.stat().st_mtime == 1
    assert main(words[:-1]) == 0
    assert output.stat().st_mtime != 1
    for other in (image[:-1], image[:-1] + b"?"):
        output.write_bytes(other)
        assert main(words) == 0
        assert output.read_bytes() == image
