"""A project of five shared libraries and three plugins by CMake's ordinary targets.

What it builds is started with a runtime that says which image each launch finds, and audited.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import pytest
from helpers import cmake_tree, oracle
from helpers.clients import needs_cmake
from helpers.host_build import Failed, HostBuild, Log

from pylink.audit.command import main

pytestmark = [oracle.needs_oracle, needs_cmake]

KERNELS = {"core", "geo", "physics"}


@dataclass
class Tree:
    """The project, built and installed; by which CMake and with which generator."""

    build: HostBuild
    cmake: str
    generator: str
    capsys: pytest.CaptureFixture[str]

    def file(self, name: str) -> Path:
        return self.build.folder / name

    def start(self, *words: str | Path) -> set[str]:
        """The kernels that a program launches, each of which an image has."""
        return used(Log(self.build.run(*words)))

    def audit(self, *words: str | Path) -> list[tuple[str, str]]:
        """The rules of what the command reports, each with the first step that it names."""
        status = main([*map(str, words), "--json"])
        found = json.loads(self.capsys.readouterr().out)["findings"]
        assert status == int(any(finding["level"] == "error" for finding in found))
        return [(finding["rule"], "".join(finding["steps"][:1])) for finding in found]


def used(log: Log) -> set[str]:
    assert log.ended, log.text
    assert not log.lost_names, log.text
    return {name.partition("_kernel")[0].lstrip("_Z0123456789") for name, _ in log.used}


@pytest.mark.parametrize("version", ["in PATH", "newest"])
def test_tree(tmp_path: Path, version: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One test, as it builds once what all parts look at."""
    is_newest = version == "newest"
    program = cmake_tree.NEWEST if is_newest else "cmake"
    tree = Tree(HostBuild(tmp_path), program, "Unix Makefiles" if is_newest else "Ninja", capsys)
    cmake_tree.write(tree.build)
    words = (*cmake_tree.compiler(tree.build), "-G", tree.generator)
    cmake_tree.configure(tree.build, "land", "built", *words, cmake=program)
    tree.build.run(program, "--install", "built", "--prefix", "installed")
    check_plugins(tree)
    check_python_extension(tree)
    check_program_of_open_and_closed_libraries(tree)
    check_project_without_cuda(tree)
    check_changed_library(tree)
    if not is_newest:
        check_faults(tree)


def check_plugins(tree: Tree) -> None:
    """In any order and scope, in programs with the libraries and without."""
    plugins = {name: tree.file(f"built/plugins/lib{name}.so") for name in "pq"}
    for scope in ("local", "global"):
        for order in permutations(plugins):
            words = [scope, *(plugins[name] for name in order)]
            assert tree.start("built/host", *words) == {*KERNELS, *order}
            assert tree.start("built/bare", *words) == set(order)
    for name in ("host", "bare", "device"):
        assert audit_program(tree, name) == []


def audit_program(tree: Tree, name: str) -> list[tuple[str, str]]:
    """What is said of a program that opens the plugins."""
    files = [tree.file(f"built/plugins/lib{name}.so") for name in "pq"]
    plugins = [word for file in files for word in ("--plugin", file)]
    folders = ("-L", tree.file("built"), "-L", tree.file("built/deep"))
    return tree.audit(tree.file(f"built/{name}"), *plugins, *folders)


def check_python_extension(tree: Tree) -> None:
    """Beside a plugin that shows its symbols."""
    folder = tree.file("built/plugins")
    code = (
        f"import ctypes, r; r.run(); ctypes.CDLL('{folder}/libp.so', ctypes.RTLD_GLOBAL).run();"
        "print('end of main')"
    )
    places = {"LD_LIBRARY_PATH": str(tree.file("runtime")), "PYTHONPATH": str(folder)}
    environment = {**os.environ, **places}
    text = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
    assert used(Log(text)) == {"r", "p"}


def check_program_of_open_and_closed_libraries(tree: Tree) -> None:
    """It registers the module of the library that no plugin uses, and borrows the others."""
    log = Log(tree.build.run("built/device"))
    assert used(log) == {*KERNELS, "extra", "device"}
    images = dict(log.used)
    assert images["_Z13device_kernelPi"] == images["_Z12extra_kernelPi"]
    assert len(set(images.values())) == 4


def check_project_without_cuda(tree: Tree) -> None:
    """Its program links the device code of open libraries that a library of C++ uses privately."""
    build = tree.build
    words = [f"-DCMAKE_PREFIX_PATH={tree.file('installed')}", f"-DCUDAToolkit_ROOT={build.root}"]
    words += ["-G", tree.generator]
    said = cmake_tree.configure(build, "user", "used", *words, cmake=tree.cmake)
    assert "CMake Warning" not in said
    plugin = tree.file("used/below/libplugin.so")
    assert tree.start("used/host", "local", plugin) == {*KERNELS, "extra"}
    folder = tree.file("installed/lib")
    assert tree.audit(tree.file("used/host"), "--plugin", plugin, "-L", folder) == []
    said = build.run(tree.cmake, "used", "-DPLUGIN_USES_OPEN=ON")
    assert "the plugin 'plugin' uses the open shared library 'land::extra'" in " ".join(
        said.split()
    )
    build.run(tree.cmake, "used", "-DPLUGIN_USES_OPEN=OFF")
    before = tree.file("used/host").stat().st_mtime_ns
    tree.file("installed/lib/libextra.so").touch()
    build.run(tree.cmake, "--build", "used")
    assert tree.file("used/host").stat().st_mtime_ns > before


def check_changed_library(tree: Tree) -> None:
    """A plugin that borrows of it is linked again."""
    image = tree.file("built/plugins/libp.so")
    before = image.read_bytes()
    source = tree.file("land/geo.cu")
    source.write_text(source.read_text().replace("x + 1", "x * x + 77"))
    tree.build.run(tree.cmake, "--build", "built")
    assert image.read_bytes() != before


def check_faults(tree: Tree) -> None:
    """The audit names each with the step that helps; without the faults all is right again."""
    for fault, rule, library in (
        ("open", "audit-incomplete", "libphysics.so.1"),
        ("unlinked", "audit-unanswered", "libp.so"),
    ):
        tree.build.run(tree.cmake, "built", f"-DFAULT={fault}")
        tree.build.run(tree.cmake, "--build", "built")
        steps = [step for name, step in audit_program(tree, "host") if name == rule]
        assert any(f"/{library}' for the device (nvcc -shared" in step for step in steps), steps
        assert loses(tree)
    tree.build.run(tree.cmake, "built", "-DFAULT=")
    tree.build.run(tree.cmake, "--build", "built")
    check_plugins(tree)


def loses(tree: Tree) -> bool:
    """Whether a program with a plugin loses kernels, or cannot open the plugin."""
    try:
        log = Log(tree.build.run("built/host", "local", tree.file("built/plugins/libp.so")))
    except Failed:
        return True
    return bool(log.lost_names)
