"""The nvcc of an overlay: which command lines it takes for device-link steps, without a toolkit.

The program stands between two scripts that say what they are started with.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from pylink.devicelink.nvccoptions import LEFT, OPTIONS
from pylink.options.table import FLAG

PROGRAM = shutil.which("pylink", path=sysconfig.get_path("scripts"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("overlay")
    binaries = place / "bin"
    binaries.mkdir()
    assert PROGRAM is not None
    shutil.copy(PROGRAM, binaries / "nvcc")
    for name, says in (("pylink", "step"), ("toolkit-nvcc", "nvcc")):
        script = binaries / name
        script.write_text(f'#!/bin/sh\nprintf "%s\\n" {says} "$@"\nexit 7\n')
        script.chmod(0o755)
    files = {
        "objects.rsp": 'first.o "second file.o"\n',
        "source.rsp": "first.o second.cu\n",
        "options.rsp": "-arch=sm_90 -Xcompiler -fPIC\n",
        "nested.rsp": "--options-file objects.rsp -o prog\n",
        "open.rsp": '"first.o',
        "empty.rsp": "",
    }
    for name, text in files.items():
        (place / name).write_text(text)
    return place


def start(folder: Path, *words: str, **variables: str) -> list[str]:
    """Who was started, and with which words."""
    environment = {name: text for name, text in os.environ.items() if "NVCC" not in name}
    done = subprocess.run(
        [folder / "bin" / "nvcc", *words],
        cwd=folder,
        env={**environment, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (7, "")
    return done.stdout.splitlines()


STEPS = [
    ["-dlink", "a.o", "-o", "b.o"],
    ["--device-link", "a.obj", "lib.a", "x.so"],
    ["a.o", "-o", "prog"],
    ["a.o", "-o", "file.cu", "-ccbin", "g++.cpp"],
    ["-gencode", "arch=compute_80,code=[sm_80,sm_86]", "-arch=sm_90", "a.o"],
    ["-L.", "-lcudart", "-I", "x.cu", "-Ix", "-DA=b.cu", "-O3", "a.o", "-Xlinker", "x.cu"],
    ["-dlink", "a.o", "-fatbin"],
    ["-Xcompiler", "-fPIC,-Wall", "--compiler-options", "'-fvisibility=hidden -O2'", "a.o"],
    ["-forward-unknown-to-host-compiler", "-fopenmp-unheard-of", "a.o"],
    ["--options-file", "objects.rsp"],
    ["-optf", "options.rsp,objects.rsp"],
    ["-optf=nested.rsp"],
    ["-v", "a.o"],
]
NOT_STEPS = [
    ["--version"],
    ["-c", "a.cu"],
    ["a.cu", "b.o", "-o", "prog"],
    ["-dlink", "a.cu", "b.o"],
    ["-dlink", "a.ptx"],
    ["-dlink", "libx.so.1"],
    ["-dlink"],
    ["-dlink", "-arch=sm_90"],
    ["-dlink", "a.o", "-keep"],
    ["-dlink", "a.o", "--dryrun"],
    ["-nodlink", "a.o", "-o", "prog"],
    ["a.o", "-lib", "-o", "lib.a"],
    ["a.o", "-fatbin"],
    ["-r", "a.o"],
    ["-dlink", "a.o", "--unheard-of"],
    ["-dlink", "a.o", "-fPIC"],
    ["-dlink", "a.o", "-Xcompiler", "-flto"],
    ["-dlink", "a.o", "-Xcompiler", "'-fPIC -mcmodel=large'"],
    ["-dlink", "a.o", "-Xcompiler", "-O2,-fno-pie"],
    ["-forward-unknown-to-host-compiler", "-flto", "a.o"],
    ["-dlink", "a.o", "-o"],
    ["-dlink=yes", "a.o"],
    ["-optf", "source.rsp"],
    ["-optf", "absent.rsp", "a.o"],
    ["-optf", "open.rsp", "a.o"],
    ["-optf", "bin", "a.o"],
    ["-optf", "/dev/stdin", "a.o"],
    ["-optf", "empty.rsp"],
    ["-x", "cu", "a.o"],
    [],
]


@pytest.mark.parametrize("words", STEPS, ids=" ".join)
def test_steps_are_for_pylink(folder: Path, words: list[str]) -> None:
    started = start(folder, *words)
    assert started == ["step", "dlink", "--cuda", str(folder), "--as-nvcc", *words]


@pytest.mark.parametrize("words", NOT_STEPS, ids=" ".join)
def test_all_else_is_for_the_nvcc_of_the_toolkit(folder: Path, words: list[str]) -> None:
    assert start(folder, *words) == ["nvcc", *words]


def test_variables_of_nvcc_have_words_too(folder: Path) -> None:
    assert start(folder, "a.o")[0] == "step"
    assert start(folder, "a.o", NVCC_APPEND_FLAGS="--dryrun")[0] == "nvcc"
    assert start(folder, "a.o", NVCC_PREPEND_FLAGS='"b.cu" -arch=sm_90')[0] == "nvcc"
    assert start(folder, "-arch=sm_90", NVCC_APPEND_FLAGS="-dlink a.o")[0] == "step"
    assert start(folder, "a.o", "-o", NVCC_APPEND_FLAGS="x.cu")[0] == "step"


def test_whoever_was_handed_on_gets_nvcc(folder: Path) -> None:
    assert start(folder, "-dlink", "a.o", PYLINK_DLINK_HANDED_ON="1")[0] == "nvcc"


def test_every_option_of_the_table_is_known(folder: Path) -> None:
    """With its argument, which no input is taken for; those left to nvcc are handed on."""
    for row in OPTIONS:
        if row.long in ("options-file", "fatbin", "cubin", "relocatable-link", "lib"):
            continue
        for spelling in (f"-{row.short}", f"--{row.long}"):
            argument = [] if row.takes == FLAG else ["-O.cu" if row.long[0] == "X" else "3.cu"]
            if row.long == "compiler-options":
                argument = ["-O3"]
            words = [spelling, *argument, "a.o"]
            assert start(folder, *words)[0] == ("nvcc" if row.use == LEFT else "step"), words


def test_a_pipe_is_left_to_who_uses_it(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    try:
        assert start(folder, "--options-file", "pipe", "a.o")[0] == "nvcc"
    finally:
        (folder / "pipe").unlink()
