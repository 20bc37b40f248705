"""cuda.core and numba-cuda link through pylink unchanged, with and without the stand-in alike."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import demo, oracle
from helpers.compare import compare

pytestmark = oracle.needs_oracle

ARCH = "sm_90a"

# What each client is asked to link: (file, what it is called) pairs come as arguments.
CORE = """
from cuda.core import Linker, LinkerOptions, ObjectCode
MAKERS = {
    "cubin": ObjectCode.from_cubin,
    "ptx": ObjectCode.from_ptx,
    "o": ObjectCode.from_object,
    "a": ObjectCode.from_library,
}
def make(path):
    with open(path, "rb") as stream:
        return MAKERS[path.rpartition(".")[2]](stream.read(), name=os.path.basename(path))
def link(paths, **options):
    linker = Linker(*map(make, paths), options=LinkerOptions(arch=ARCH, **options))
    code = linker.link("cubin").code
    return bytes(code), linker.get_error_log() + linker.get_info_log()
"""
NUMBA = """
from numba.cuda.cudadrv.driver import _Linker
def link(paths, **options):
    linker = _Linker(cc=(9, 0, "a"), **options)
    for path in paths:
        linker.add_file_guess_ext(path)
    code = linker.complete().code
    return bytes(code), linker.error_log + linker.info_log
"""
PROGRAM = """
import json, os, sys
standin, ARCH, output, options, *paths = sys.argv[1:]
if standin == "yes":
    import pylink.jitlink
    pylink.jitlink.install()
{client}
try:
    image, log = link(paths, **json.loads(options))
except Exception as error:
    print(type(error).__name__, error)
else:
    with open(output, "wb") as stream:
        stream.write(image)
    print(log)
"""


def run(
    client: str, paths: list[Path], folder: Path, *, standin: bool, **options: object
) -> tuple[str, bytes]:
    """What the client prints, and what it linked."""
    output = folder / f"linked-{standin}"
    output.unlink(missing_ok=True)
    program = PROGRAM.format(client=client)
    words = ["yes" if standin else "no", ARCH, str(output), json.dumps(options), *map(str, paths)]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, output.read_bytes() if output.exists() else b""


def check(client: str, paths: list[Path], folder: Path, **options: object) -> tuple[str, bytes]:
    """The same words and the same cubin either way."""
    text, image = run(client, paths, folder, standin=True, **options)
    expected_text, expected = run(client, paths, folder, standin=False, **options)
    assert text == expected_text
    assert bool(image) == bool(expected)
    if expected:
        assert compare(image, expected) == []
    return text, image


# numba-cuda is not a part of the test environment (pyproject.toml says why).
FOUND = {"cuda.core": CORE}
if importlib.util.find_spec("numba_cuda") is not None:
    FOUND["numba-cuda"] = NUMBA
CLIENTS = pytest.mark.parametrize("client", FOUND.values(), ids=FOUND.keys())


@CLIENTS
def test_cubins(client: str, tmp_path: Path) -> None:
    text, image = check(client, demo.cubins(ARCH), tmp_path)
    assert image
    assert text == "\n"


@pytest.mark.parametrize(
    "options",
    [
        {"verbose": True},
        {"max_register_count": 32},
        {"optimization_level": 3},
        {"debug": True},
        {"lineinfo": True},
        {"optimize_unused_variables": True},
        {"ptxas_options": "-v"},
        {"split_compile": 0},
        {"ftz": True, "fma": True, "prec_div": True, "prec_sqrt": True},
        {"kernels_used": ["_Z7field_0PK8ParticlePfi"]},
        {"no_cache": True},
    ],
    ids=str,
)
def test_options_of_cuda_core(options: dict[str, object], tmp_path: Path) -> None:
    _, image = check(CORE, demo.cubins(ARCH), tmp_path, **options)
    assert image


@CLIENTS
def test_what_is_compiled(client: str, tmp_path: Path) -> None:
    """PTX goes on to the real library, beside a cubin."""
    caller = "__device__ int twice(int a); __global__ void k(int *p) { *p = twice(*p); }"
    (tmp_path / "caller.ptx").write_text(oracle.compile_ptx(caller, "90a"))
    callee = oracle.compile("__device__ int twice(int a) { return 2 * a; }", "90a")
    (tmp_path / "callee.cubin").write_bytes(callee)
    _, image = check(client, [tmp_path / "caller.ptx", tmp_path / "callee.cubin"], tmp_path)
    assert image


@CLIENTS
def test_faults(client: str, tmp_path: Path) -> None:
    """Undefined references and damaged files: an exception of the client's, and its words.

    The client destroys its handle while the exception is on its way.
    """
    path = demo.cubins(ARCH)[0]
    text, image = check(client, [path], tmp_path)
    assert not image
    assert "Undefined reference to '_Z9block_sumf'" in text
    text_file = tmp_path / "text.cubin"
    text_file.write_text("no device code at all")
    text, image = check(client, [text_file], tmp_path)
    assert not image
    assert "does not match type" in text
