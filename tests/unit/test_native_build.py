"""When native code is built again: after a change of PYLINK_DEBUG all of it, otherwise nothing."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def read_setup(monkeypatch: pytest.MonkeyPatch, debug: str) -> dict[str, Any]:
    """What setup.py defines with this value of PYLINK_DEBUG, without a build."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setenv("PYLINK_DEBUG", debug)
    monkeypatch.setattr("setuptools.setup", lambda **_: None)
    return runpy.run_path("setup.py")


def test_a_debug_build_has_other_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    normal, debug = read_setup(monkeypatch, "0"), read_setup(monkeypatch, "1")
    assert (normal["FLAGS"], debug["FLAGS"]) == (["-O3", "-g0"], ["-O0", "-g"])
    assert normal["DIRECTIVES"] == {**debug["DIRECTIVES"], "boundscheck": False}
    assert debug["DIRECTIVES"]["boundscheck"] is True


def test_a_build_that_counts_is_not_optimized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYLINK_COVERAGE", "1")
    setup = read_setup(monkeypatch, "0")
    counting = ["--coverage", "-fprofile-update=prefer-atomic"]
    assert setup["FLAGS"] == ["-O0", "-g0", *counting]
    assert setup["kernels"].extra_link_args == [*counting, "-Wl,-u,__gcov_dump"]
    assert setup["DIRECTIVES"] == read_setup(monkeypatch, "0")["DIRECTIVES"]


def test_files_of_other_settings_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty_if_changed = read_setup(monkeypatch, "0")["empty_if_changed"]
    folder = tmp_path / "objects"
    built = folder / "src" / "merge.o"

    def is_kept(settings: str) -> bool:
        built.parent.mkdir(parents=True, exist_ok=True)
        built.touch()
        empty_if_changed(folder, settings)
        return built.exists()

    assert not is_kept("-O3")  # an earlier setup.py recorded no settings
    assert is_kept("-O3")
    assert not is_kept("-O0 -g")
    assert is_kept("-O0 -g")
    assert not is_kept("-O3")


def test_a_build_empties_its_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both directories: that of translated kernels, and that of their objects."""
    setup = read_setup(monkeypatch, "1")
    kernels = setup["kernels"]
    monkeypatch.chdir(tmp_path)
    old = [tmp_path / "build/cython/old.c", tmp_path / "temp/kernels/old.o"]
    for file in old:
        file.parent.mkdir(parents=True)
        file.touch()
    functions = setup["BuildNative"].finalize_options.__globals__
    monkeypatch.setitem(functions, "cythonize", lambda *_, **__: [])
    monkeypatch.setattr(functions["header"], "write_headers", lambda *_: None)
    monkeypatch.setattr("setuptools.command.build_ext.build_ext.build_extension", lambda *_: None)
    distribution = import_module("setuptools").Distribution
    command = setup["BuildNative"](distribution({"name": "x", "ext_modules": [kernels]}))
    command.build_temp = str(tmp_path / "temp")
    command.finalize_options()
    command.build_extension(kernels)
    assert [file.exists() for file in old] == [False, False]


def is_compiled(command: Any, source: str) -> bool:
    """Let the command build a module: whether it called the compiler."""
    calls = []
    compiler = command.compiler
    command.compiler = SimpleNamespace(
        object_filenames=compiler.object_filenames,
        compile=lambda *what, **how: calls.append(compiler.compile(*what, **how)),
    )
    assert Path(command.compile_module(source)).is_file()
    command.compiler = compiler
    return bool(calls)


def test_a_module_is_compiled_again_if_what_it_was_made_from_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if a header changed that another header includes, if one is gone, after a compilation
    that was interrupted, and after a build without rules. A checkout may move.
    """
    setup = read_setup(monkeypatch, "1")
    root = tmp_path / "before"
    root.mkdir()
    monkeypatch.chdir(root)
    Path("kernel.c").write_text('#include "outer.h"\n#include <stdint.h>\nint kernel = NUMBER;\n')
    Path("outer.h").write_text('#include "inner.h"\n')
    Path("inner.h").write_text("#define NUMBER 1\n")
    distribution = import_module("setuptools").Distribution
    command = setup["BuildNative"](distribution({"name": "x", "ext_modules": [setup["kernels"]]}))
    command.force, command.objects = False, Path("objects")
    command.compiler = setup["new_compiler"]()
    setup["customize_compiler"](command.compiler)

    def changes(name: str) -> bool:
        for path in Path.cwd().rglob("*.*"):
            os.utime(path, (1000, 1000))
        os.utime(name, (2000, 2000))
        return is_compiled(command, "kernel.c")

    assert is_compiled(command, "kernel.c")
    assert not is_compiled(command, "kernel.c")
    assert changes("kernel.c")
    assert not is_compiled(command, "kernel.c")
    assert changes("outer.h")
    assert changes("inner.h")
    assert changes("objects/kernel.d")
    Path("objects/kernel.d").unlink()
    assert is_compiled(command, "kernel.c")
    Path("outer.h").write_text("#define NUMBER 2\n")
    Path("inner.h").unlink()
    assert is_compiled(command, "kernel.c")
    assert not is_compiled(command, "kernel.c")
    root.rename(tmp_path / "after")
    monkeypatch.chdir(tmp_path / "after")
    assert not is_compiled(command, "kernel.c")


def test_headers_are_named_from_the_root_of_native_code() -> None:
    """So each has one name in all sources."""
    native = ROOT / "src/_native"
    kernels = {path for path in native.glob("*/*.h") if path.parent.name != "launcher"}
    include = re.compile(r'#\s*include\s*"([^"]+)"')
    assert len(kernels) > 15
    assert [
        (path.name, name)
        for path in kernels
        for name in include.findall(path.read_text(encoding="utf-8"))
        if not (native / name).is_file()
    ] == []


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_builds_again_for_the_other_kind(tmp_path: Path) -> None:
    """In an environment with the files that make leaves after a normal build."""
    (tmp_path / "bin").mkdir()
    for name in ("bin/python", "recorded", "optimized", "base", "built"):
        (tmp_path / name).touch()
    # Without what a make that runs the tests hands down.
    foreign = ("MAKE", "MFLAGS", "PYLINK_DEBUG")
    environment = {name: text for name, text in os.environ.items() if not name.startswith(foreign)}

    def make(*words: str) -> int:
        command = ["make", f"VENV={tmp_path}", *words]
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, check=False
        ).returncode

    def is_built(*words: str) -> bool:
        return make("-q", f"{tmp_path}/built", *words) == 0

    debug = "PYLINK_DEBUG=1"
    assert is_built()
    assert not is_built(debug)
    # As a debug build leaves it.
    assert make(f"{tmp_path}/debug", debug) == 0
    (tmp_path / "built").touch()
    assert is_built(debug)
    assert not is_built()
