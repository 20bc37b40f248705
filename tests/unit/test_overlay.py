"""`pylink toolkit-overlay`: what the directory holds, and what it never touches."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import sysconfig
from contextlib import suppress
from pathlib import Path

import pytest
from helpers.installed import Installed, build_scripts
from helpers.toolkits import cubin_by, toolkit_of

from pylink.command.cli import main
from pylink.command.overlay import SHELL_LAUNCHER, launcher_text
from pylink.devicelink.toolkit import find_toolkit
from pylink.facts.releases import BY_NAME
from pylink.files.overlayfiles import find_binaries, followed_release


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
        *(
            "crt",
            "nvcc",
            "nvcc.profile",
            "nvlink",
            "nvlink.notes",
            "ptxas",
            "pylink",
            "toolkit-nvcc",
        )
    ]
    assert (directory / "bin" / "ptxas").resolve() == toolkit / "bin" / "ptxas"
    assert sorted(os.listdir(directory / "lib64")) == sorted(os.listdir(toolkit / "lib"))
    assert (directory / "bin" / "nvlink").resolve() != toolkit / "bin" / "nvlink"
    assert not (directory / "bin" / "nvlink.release").exists()  # nothing says which it is


def test_it_says_what_it_made_and_what_comes_next(
    tmp_path: Path, toolkit: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "overlay"
    assert overlay(directory, toolkit) == 0
    made, notes, following = capfd.readouterr().out.splitlines()
    assert made == f"{directory} is the CUDA toolkit in {toolkit}, with pylink as nvlink"
    assert notes == "'pylink note' lines follow nvlink's messages (--plain: only nvlink's)"
    assert following.startswith(f"next: {directory}/bin/nvcc ")
    command = ["toolkit-overlay", str(directory), "--cuda", str(toolkit), "--plain"]
    assert main(command, tool="pylink") == 0
    assert capfd.readouterr().out.splitlines()[1] == "prints only nvlink's messages"
    assert not (directory / "bin" / "nvlink.notes").exists()
    assert main(["toolkit-overlay", str(directory)], tool="pylink") == 0
    assert capfd.readouterr().out.splitlines()[0] == f"{directory}/bin/nvlink is pylink"


def test_its_nvcc_stays_in_the_overlay_when_links_are_resolved(
    tmp_path: Path, toolkit: Path
) -> None:
    directory = tmp_path / "overlay"
    assert overlay(directory, toolkit) == 0
    nvcc, real = directory / "bin" / "nvcc", toolkit / "bin" / "nvcc"
    assert nvcc.resolve().parent == directory.resolve() / "bin"
    assert nvcc.stat().st_mtime_ns == real.stat().st_mtime_ns
    (directory / "bin" / "toolkit-nvcc").resolve(strict=True).samefile(real)
    done = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == "the real nvcc\n"


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
    assert result.returncode == 1
    assert result.stderr.startswith("nvlink fatal   : Unknown option 'bogus'\npylink note ")


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


def test_an_overlay_that_cannot_be_replaced_stays(
    tmp_path: Path,
    toolkit: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    directory = tmp_path / "overlay"
    assert overlay(directory, toolkit) == 0
    (toolkit / "bin" / "fatbinary").touch()
    rename = os.rename

    def fail_for_a_new_one(source: str, target: str) -> None:
        if target == str(directory) and os.path.exists(f"{source}/bin/fatbinary"):
            raise OSError(28, "No space left on device")
        rename(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", fail_for_a_new_one)
        assert overlay(directory, toolkit) == 1
    assert "No space left on device" in capfd.readouterr().err
    assert (directory / "bin" / "nvcc").exists()
    assert sorted(os.listdir(tmp_path)) == ["cuda", "overlay"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("is_put_back", [True, False])
def test_an_overlay_is_never_lost(
    tmp_path: Path,
    toolkit: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    is_put_back: bool,
) -> None:
    """Also not by an interrupt, or if it cannot be put back where it was."""
    directory = tmp_path / "overlay"
    assert overlay(directory, toolkit) == 0
    rename = os.rename

    def fail(source: str, target: str) -> None:
        if target == str(directory) and not source.endswith("replaced"):
            raise error
        if target == str(directory) and not is_put_back:
            raise OSError(5, "Input/output error")
        rename(source, target)

    with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
        patched.setattr(os, "rename", fail)
        overlay(directory, toolkit)
    places = [directory] if is_put_back else list(tmp_path.glob(".overlay.*/replaced"))
    assert [(place / "bin" / "nvcc").exists() for place in places] == [True]


def test_a_build_misses_its_overlay_for_one_rename_only(
    tmp_path: Path, toolkit: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "overlay"
    assert overlay(directory, toolkit) == 0
    remove, is_there = shutil.rmtree, []

    def look_and_remove(path: str, *, ignore_errors: bool = False) -> None:
        is_there.append((directory / "bin" / "nvcc").exists())
        remove(path, ignore_errors=ignore_errors)

    monkeypatch.setattr(shutil, "rmtree", look_and_remove)
    assert overlay(directory, toolkit) == 0
    assert is_there == [True]


def test_other_directories_are_left_alone(
    tmp_path: Path, toolkit: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "notes.txt").write_text("keep")
    assert overlay(mine, toolkit) == 1
    assert (mine / "notes.txt").read_text() == "keep"
    assert "is not an overlay: remove it or choose another" in capfd.readouterr().err
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
    # The linker decides also if all else are links.
    (tmp_path / "alone" / "bin").mkdir(parents=True)
    shutil.copy(other / "bin" / "nvlink", tmp_path / "alone" / "bin")
    assert overlay(tmp_path / "alone", toolkit) == 1
    assert (tmp_path / "alone" / "bin" / "nvlink").is_file()
    # A link in its place is left alone, too, whatever it leads to.
    assert overlay(tmp_path / "overlay", toolkit) == 0
    (tmp_path / "link").symlink_to("overlay")
    assert overlay(tmp_path / "link", toolkit) == 1
    assert (tmp_path / "link").is_symlink()


def test_what_is_no_toolkit_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert overlay(tmp_path / "overlay", tmp_path) == 1
    assert capfd.readouterr().err == (
        f"pylink toolkit-overlay: {tmp_path} is not a CUDA toolkit: it has no bin/nvcc. Name the "
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
        f"exec {long} -I -c 'import sys; del sys.argv[0]",
    ]


def tells(toolkit: Path, tool: str, release: str) -> None:
    """Let a tool of the toolkit print a version as the real ones do."""
    number, _, patch = release.partition("_")
    said = f"Cuda compilation tools, release {number}, V{number}.{patch or 99}"
    text = f"#!/bin/sh\necho '{said}'\n"
    (toolkit / "bin" / tool).write_text(text)


def knows(toolkit: Path, release: str) -> None:
    """Give the toolkit the file that installers write."""
    number, _, patch = release.partition("_")
    told = {"cuda": {"name": "CUDA SDK", "version": f"{number}.1"}}
    if patch:
        told["cuda_nvcc"] = {"name": "CUDA NVCC", "version": f"{number}.{patch}"}
    (toolkit / "version.json").write_text(json.dumps(told))


def version(*words: str | Path, path: str | None = None) -> str:
    """What the linker says that it follows."""
    environment = dict(os.environ) if path is None else {**os.environ, "PATH": path}
    result = subprocess.run(
        [*words, "--version"], capture_output=True, text=True, env=environment, check=True
    )
    return result.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("nvcc", "nvlink", "file", "found"),
    [
        ("13.4", "13.5", "13.1", "13.4"),  # by pip, one package may be newer than another
        (None, "13.5", "13.1", "13.5"),
        (None, None, "13.1", "13.1"),
        ("13.2_51", "13.2_86", None, "13.2.51"),
        ("13.2_78", None, None, "13.2.78"),
        ("13.2_86", "13.2_51", None, "13.2"),
        (None, None, "13.2_51", "13.2.51"),
        (None, None, "13.2", "13.2"),
        ("12.9", None, None, "12.9"),
        ("12.8", None, None, "13.0"),  # which no link can follow
        ("99.0", None, None, "13.0"),
        (None, None, None, "13.0"),
    ],
)
def test_the_release_of_the_toolkit_is_followed(
    nvcc: str | None,
    nvlink: str | None,
    file: str | None,
    found: str,
    tmp_path: Path,
    toolkit: Path,
) -> None:
    for tool, release in (("nvcc", nvcc), ("nvlink", nvlink)):
        if release:
            tells(toolkit, tool, release)
    if file:
        knows(toolkit, file)
    assert overlay(tmp_path / "overlay", toolkit) == 0
    linker = tmp_path / "overlay" / "bin" / "nvlink"
    row = BY_NAME[found]
    assert version(linker) == f"Follows {row.title}"
    # As nvcc starts it, and against what was asked for.
    assert version("nvlink", path=f"{linker.parent}:{os.environ['PATH']}") == version(linker)
    assert version(linker, "--nvlink-version=13.3") == f"Follows {BY_NAME['13.3'].title}"


@pytest.mark.parametrize(
    "text", ["{", "[]", "[" * 100_000, '{"cuda": 3}', '{"cuda": {"version": 3}}', "\xff"]
)
def test_a_version_file_that_says_nothing_is_passed_over(
    text: str, tmp_path: Path, toolkit: Path
) -> None:
    (toolkit / "version.json").write_text(text, encoding="latin-1")
    assert overlay(tmp_path / "overlay", toolkit) == 0
    assert not (tmp_path / "overlay" / "bin" / "nvlink.release").exists()


def test_links_of_an_overlay_have_its_release_or_are_refused(tmp_path: Path, toolkit: Path) -> None:
    tells(toolkit, "nvcc", "13.2")
    assert overlay(tmp_path / "overlay", toolkit) == 0
    linker = tmp_path / "overlay" / "bin" / "nvlink"
    for made in (130, 135, 199):
        (tmp_path / f"{made}.cubin").write_bytes(cubin_by(made))

    def link(made: int, *words: str) -> tuple[int, str]:
        command = [str(linker), "-arch=sm_80", f"{made}.cubin", "-o", "out", *words]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return result.returncode, result.stderr

    assert link(130) == (0, "")
    assert toolkit_of((tmp_path / "out").read_bytes()) == 132
    for made in (135, 199):
        status, text = link(made)
        assert (status, text.splitlines()[0]) == (
            1,
            f"nvlink fatal   : Input file '{made}.cubin' newer than toolkit ({made} vs 132)",
        )
    status, text = link(135, "--diagnostics_format=text")
    assert "this toolkit is CUDA 13.2" in text
    assert link(135, "--nvlink-version=13.5") == (0, "")
    assert toolkit_of((tmp_path / "out").read_bytes()) == 135


def test_a_launcher_of_the_shell_finds_the_release(tmp_path: Path) -> None:
    launcher = tmp_path / "nvlink"
    launcher.write_text(SHELL_LAUNCHER.format(interpreter=sys.executable))
    launcher.chmod(0o755)
    (tmp_path / "nvlink.release").write_text("13.4\n")
    assert version(launcher) == f"Follows {BY_NAME['13.4'].title}"


def test_a_link_to_the_program_finds_the_release(tmp_path: Path) -> None:
    program = shutil.which("pylink", path=sysconfig.get_path("scripts"))
    assert program is not None
    linker = tmp_path / "nvlink"
    linker.symlink_to(program)
    (tmp_path / "nvlink.release").write_text("13.4\n")
    expected = f"Follows {BY_NAME['13.4'].title}"
    assert version(linker) == version("nvlink", path=f"{tmp_path}:{os.environ['PATH']}") == expected


def test_a_linker_without_a_folder_is_the_first_in_path(tmp_path: Path) -> None:
    """As the native program is told its name, whatever the script that installers write is told."""
    for folder, release in (("empty", None), ("one", "13.1"), ("two", "13.2"), ("none", "12.8")):
        (tmp_path / folder).mkdir()
        if release:
            (tmp_path / folder / "nvlink").touch(mode=0o755)
            (tmp_path / folder / "nvlink.release").write_text(f"{release}\n")
    search = os.pathsep.join(str(tmp_path / name) for name in ("empty", "two", "one"))
    named = str(tmp_path / "one" / "nvlink")
    assert followed_release(find_binaries("nvlink", search)) == "13.2"
    assert followed_release(find_binaries(named, search)) == "13.1"
    assert followed_release(str(tmp_path / "none")) is None
    assert find_binaries("nvlink", str(tmp_path / "empty")) is None
    assert followed_release(None) is None


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("13.2\n", "13.2"),
        ("13.2.78\n", "13.2.51"),
        ("13.4.92\n", "13.4"),  # an older pylink did not know it, and wrote what nvcc printed
        ("13.99\n", None),
        ("none", None),
        ("", None),
        ("\xfc", None),
        ("1" * 5000 + ".0", None),
    ],
)
def test_links_and_steps_follow_the_same_release(
    text: str, release: str | None, toolkit: Path
) -> None:
    binaries = toolkit / "bin"
    (binaries / "nvlink.release").write_text(text, encoding="latin-1")
    launcher = binaries / "nvlink"
    launcher.write_text(SHELL_LAUNCHER.format(interpreter=sys.executable))
    assert version(launcher) == f"Follows {BY_NAME[release or '13.0'].title}"
    assert find_toolkit(str(toolkit)).release == release


def test_its_linker_is_the_program_where_there_is_one(tmp_path: Path, toolkit: Path) -> None:
    installed = Installed(tmp_path / "prefix", build_scripts(tmp_path))
    base = os.path.realpath(sys.executable)
    python = installed.program.with_name("python")
    python.symlink_to(base)
    (installed.folder / "pyvenv.cfg").write_text(f"home = {os.path.dirname(base)}\n")
    script = installed.program.with_name("pylink-python")
    script.write_text(f"#!{python}\n{script.read_text().partition(chr(10))[2]}")
    directory = tmp_path / "overlay"
    linker = directory / "bin" / "nvlink"
    words = ["toolkit-overlay", str(directory), "--cuda", str(toolkit)]
    for _ in range(2):
        done = installed.run(*words, PYTHONPATH="")
        assert (done.returncode, done.stderr) == (0, "")
        assert linker.readlink() == installed.program
    for _ in range(2):  # by script, and from a bundle
        link = ["-arch=sm_80", "a.cubin", "-o", "out.cubin"]
        done = installed.run(*link, name=str(linker), PYTHONPATH="")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert installed.bundle.exists()
    done = installed.run("-bogus", name=str(linker), PYTHONPATH="")
    assert done.returncode == 1
    assert done.stderr.startswith("nvlink fatal   : Unknown option 'bogus'\npylink note ")
    # It stays an overlay when the program is gone; a program of something else is not linked to.
    installed.program.unlink()
    by_python = [str(python), "-m", "pylink", *words]
    assert installed.run(*by_python[1:], name=by_python[0], PYTHONPATH="").returncode == 0
    assert linker.read_text().startswith(f"#!{python} -I\n")


def test_programs_of_others_are_kept(tmp_path: Path, toolkit: Path) -> None:
    directory = tmp_path / "overlay"
    assert overlay(directory, toolkit) == 0
    (directory / "bin" / "mine").write_text("keep this")
    assert overlay(directory, toolkit) == 1
    (directory / "bin" / "mine").unlink()
    (directory / "bin" / "nvlink").unlink()
    (directory / "bin" / "nvlink").symlink_to(toolkit / "bin" / "nvlink")
    assert overlay(directory, toolkit) == 1
