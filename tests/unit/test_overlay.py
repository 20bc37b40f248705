"""`pylink toolkit-overlay`: what the directory holds, and what it never touches."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pylink.command.cli import main
from pylink.command.overlay import launcher_text


@pytest.fixture
def toolkit(tmp_path: Path) -> Path:
    """A toolkit as Python packages install it: no lib64."""
    root = tmp_path / "cuda"
    for directory in ("bin", "bin/crt", "include", "lib", "nvvm"):
        (root / directory).mkdir(parents=True)
    (root / "bin" / "nvcc.profile").write_text("TOP = $(_HERE_)/..\n")
    for name in ("nvcc", "ptxas", "nvlink"):
        (root / "bin" / name).write_text(f"#!/bin/sh\necho the real {name}\n")
        (root / "bin" / name).chmod(0o755)
    return root


def overlay(directory: Path, toolkit: Path) -> int:
    return main(["toolkit-overlay", str(directory), "--cuda", str(toolkit)], tool="pylink")


def test_everything_is_the_toolkit_but_the_linker(tmp_path: Path, toolkit: Path) -> None:
    directory = tmp_path / "with" / "pylink"
    assert overlay(directory, toolkit) == 0
    assert sorted(os.listdir(directory)) == ["bin", "include", "lib", "lib64", "nvvm"]
    assert sorted(os.listdir(directory / "bin")) == [
        *("crt", "nvcc", "nvcc.profile", "nvlink", "ptxas")
    ]
    assert (directory / "bin" / "ptxas").resolve() == toolkit / "bin" / "ptxas"
    assert sorted(os.listdir(directory / "lib64")) == sorted(os.listdir(toolkit / "lib"))
    assert not (directory / "bin" / "nvlink").is_symlink()


def test_libraries_have_the_names_that_linkers_look_for(tmp_path: Path, toolkit: Path) -> None:
    directory = tmp_path / "overlay"
    for name in ("libcudart.so.13", "libnvvm.so", "libnvvm.so.4", "libcudadevrt.a"):
        (toolkit / "lib" / name).write_text(name)
    for _ in range(2):
        assert overlay(directory, toolkit) == 0
        found = {path.name: path.resolve().name for path in (directory / "lib64").iterdir()}
        assert found.pop("libcudart.so") == "libcudart.so.13"
        assert found == {name: name for name in os.listdir(toolkit / "lib")}
    (directory / "lib64" / "mine.txt").write_text("keep this")
    assert overlay(directory, toolkit) == 1


def test_its_linker_is_pylink_under_the_name_nvlink(tmp_path: Path, toolkit: Path) -> None:
    directory = tmp_path / "overlay"
    assert overlay(directory, toolkit) == 0
    environment = dict(os.environ, PYTHONPATH=str(tmp_path))  # which must not matter
    result = subprocess.run(
        [directory / "bin" / "nvlink", "-bogus"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert (result.returncode, result.stderr) == (1, "nvlink fatal   : Unknown option 'bogus'\n")


def test_an_empty_directory_becomes_one_that_others_can_read(tmp_path: Path, toolkit: Path) -> None:
    directory = tmp_path / "overlay"
    directory.mkdir(mode=0o700)
    assert overlay(directory, toolkit) == 0
    assert stat.S_IMODE(directory.stat().st_mode) == 0o755
    assert sorted(os.listdir(tmp_path)) == ["cuda", "overlay"]


def test_a_second_call_brings_it_up_to_date(tmp_path: Path, toolkit: Path) -> None:
    directory = tmp_path / "overlay"
    assert overlay(directory, toolkit) == 0
    (toolkit / "bin" / "fatbinary").touch()
    assert overlay(directory, toolkit) == 0
    assert (directory / "bin" / "fatbinary").exists()
    assert (toolkit / "bin" / "nvlink").read_text() == "#!/bin/sh\necho the real nvlink\n"


def test_other_directories_are_left_alone(
    tmp_path: Path, toolkit: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "notes.txt").write_text("keep")
    assert overlay(mine, toolkit) == 1
    assert (mine / "notes.txt").read_text() == "keep"
    assert "is no overlay: remove it or choose another" in capfd.readouterr().err
    assert overlay(toolkit / "inside", toolkit) == 1
    assert "is inside the toolkit" in capfd.readouterr().err
    assert not (toolkit / "inside").exists()
    assert overlay(toolkit, toolkit) == 1
    assert (toolkit / "bin" / "nvcc").exists()


def test_another_toolkit_is_no_overlay(tmp_path: Path, toolkit: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(toolkit, other)
    assert overlay(other, toolkit) == 1
    assert (other / "bin" / "nvlink").read_text() == "#!/bin/sh\necho the real nvlink\n"
    # A link in its place is left alone, too, whatever it leads to.
    assert overlay(tmp_path / "overlay", toolkit) == 0
    (tmp_path / "link").symlink_to("overlay")
    assert overlay(tmp_path / "link", toolkit) == 1
    assert (tmp_path / "link").is_symlink()


def test_what_is_no_toolkit_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert overlay(tmp_path / "overlay", tmp_path) == 1
    assert capfd.readouterr().err == (
        f"pylink fatal   : {tmp_path} is not a CUDA toolkit: it has no bin/nvcc. Name the "
        "directory that holds bin, include and lib or lib64\n"
    )
    assert not (tmp_path / "overlay").exists()


def test_a_script_that_starts_another_nvcc_is_no_toolkit(
    tmp_path: Path, toolkit: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (toolkit / "bin" / "nvcc.profile").unlink()
    assert overlay(tmp_path / "overlay", toolkit) == 1
    assert "it has no bin/nvcc.profile" in capfd.readouterr().err


def test_an_interpreter_with_blanks_in_its_path_works(tmp_path: Path) -> None:
    directory = tmp_path / "with blanks"
    directory.mkdir()
    interpreter = directory / "python"
    interpreter.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    interpreter.chmod(0o755)
    launcher = tmp_path / "launcher"
    launcher.write_text(launcher_text(str(interpreter)))
    launcher.chmod(0o755)
    result = subprocess.run([launcher, "-bogus"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (1, "nvlink fatal   : Unknown option 'bogus'\n")


def test_a_path_too_long_for_a_first_line_is_started_by_a_shell() -> None:
    short, long = "/" + "p" * 119, "/" + "p" * 120
    assert launcher_text(short).splitlines()[0] == f"#!{short} -I"
    assert launcher_text(long).splitlines()[:2] == [
        "#!/bin/sh",
        f'exec {long} -I -c \'import sys; sys.argv[0] = "nvlink"',
    ]
