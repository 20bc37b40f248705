"""Programs and modules that lie in the working directory are never taken for those of pylink."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from helpers import demo
from helpers.fake_tool import fake_tool

import pylink

SOURCE = Path(__file__).parents[2] / "src"
PTX = ".version 8.0\n.target sm_90\n.address_size 64\n"
LTOIR = bytes.fromhex("ed434e7f0141026203020700180001002800000000000000") + bytes(400)
AS_MODULE = ("-m", "pylink")
AS_CODE = ("-c", "import sys; from pylink.command.cli import main; sys.exit(main(sys.argv[1:]))")

# What each command starts or loads, and the names that it could be planted under.
LINKS = {
    "ptxas": (
        ("-arch=sm_90", "a.ptx", "-o", "out"),
        ("ptxas", "nvidia/cu99/bin/ptxas", "nvidia/cuda_nvcc/bin/ptxas", "bin/ptxas"),
    ),
    "host linker": (("-ghls=lcs-abs",), ("gcc", "ld", "cc", "bin/gcc", "bin/ld")),
    "nvJitLink": (
        ("-arch=sm_90", "-lto", "-nvvmpath=nvvm", "a.ltoir", "-o", "out"),
        (
            "cuda/__init__.py",
            "cuda/bindings/__init__.py",
            "cuda/bindings/nvjitlink.py",
            "nvjitlink.py",
            "python3",
        ),
    ),
    "nvdisasm": (
        ("report", "--page", "source", "demo.ncu-rep"),
        ("nvdisasm", "nvidia/cu99/bin/nvdisasm", "bin/nvdisasm"),
    ),
}


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory in which every planted file leaves a mark; environment as an attacker's.

    PATH has empty and relative elements only in front of the real ones.
    """
    monkeypatch.chdir(tmp_path)
    Path("a.ptx").write_text(PTX)
    Path("a.ltoir").write_bytes(LTOIR)
    pylink.link(demo.cubins("sm_90a"), arch="sm_90a", profile="demo.ncu-rep")
    for _, names in LINKS.values():
        for name in names:
            if name.endswith(".py"):
                path = Path(name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"open({str(tmp_path / 'MARK')!r}, 'a').write({name!r})\n")
            else:
                fake_tool(Path(name), f"echo {name} >> {tmp_path}/MARK")
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.setenv(variable, ".")
    monkeypatch.setenv("PATH", f":.:bin:{os.environ['PATH']}:")
    return tmp_path


@pytest.mark.parametrize("start", [AS_MODULE, AS_CODE])
@pytest.mark.parametrize("tool", LINKS)
def test_planted_files_are_never_run(tool: str, start: Sequence[str], trap: Path) -> None:
    words, names = LINKS[tool]
    # The next place in the order is asked when there are no wheels.
    for flags in ((), ("-S",)):
        subprocess.run(
            [sys.executable, *flags, *start, *words],
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
            capture_output=True,
            check=False,
        )
    assert not (trap / "MARK").exists(), (trap / "MARK").read_text()
    assert all((trap / name).is_file() for name in names)


def test_modules_in_the_working_directory_are_none_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "rich").mkdir()
    (tmp_path / "rich" / "__init__.py").write_text(f"open({str(tmp_path / 'MARK')!r}, 'w')\n")
    pylink.link(demo.cubins("sm_90a"), arch="sm_90a", profile=tmp_path / "demo.ncu-rep")
    done = subprocess.run(
        [sys.executable, *AS_MODULE, "report", "demo.ncu-rep"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    assert not (tmp_path / "MARK").exists()
