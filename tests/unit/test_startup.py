"""What a plain link loads: starting must cost little more than the interpreter does."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from helpers import demo
from helpers.cubin_builder import one_kernel
from helpers.fatbin_builder import container, entry

import pylink

FORBIDDEN = [
    "argparse",
    "ast",
    "asyncio",
    "collections",
    "concurrent",
    "contextlib",
    "copy",
    "ctypes",
    "dataclasses",
    "datetime",
    "email",
    "enum",
    "functools",
    "hashlib",
    "importlib.resources",
    "inspect",
    "json",
    "locale",
    "logging",
    "multiprocessing",
    "numpy",
    "operator",
    "pathlib",
    "pickle",
    "platform",
    "random",
    "re",
    "shutil",
    "socket",
    "subprocess",
    "tempfile",
    "textwrap",
    "threading",
    "tokenize",
    "traceback",
    "typing",
    "urllib",
    "warnings",
    "elftools",
]

# What only failing or unusual links need.
RARE = {
    "pylink.dedup",
    "pylink.devicelink.handover",
    "pylink.devicelink.helptexts",
    "pylink.inspect",
    "pylink.mercury",
    "pylink.options.help",
    "pylink.outputs.hostscript",
    "pylink.outputs.registerlink",
    "pylink.phases.fold",
    "pylink.renderers.text",
}

# What CMake passes.
GENCODE = ["--generate-code=arch=compute_80,code=[sm_80]"]
SEVERAL = [*GENCODE, "--generate-code=arch=compute_86,code=[sm_86]"]

# Without site, nothing but the interpreter itself has loaded a module before.
PROGRAM = """
import sys
sys.path[:0] = {path!r}
before = set(sys.modules)
from pylink.command.cli import main
status = main({argv!r}, tool={tool!r})
print(status, *sorted(set(sys.modules) - before))
"""


def loaded(argv: list[str], cwd: Path, tool: str | None = None) -> tuple[int, set[str]]:
    path = [str(Path(pylink.__file__).parent.parent)]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", PROGRAM.format(path=path, argv=argv, tool=tool)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=True,
    )
    status, *modules = done.stdout.splitlines()[-1].split()
    return int(status), set(modules)


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100"])
def test_a_plain_link_loads_nothing_heavy(arch: str, tmp_path: Path) -> None:
    # Two modules of the demo are copies in part, and comparing them loads what deduplication needs.
    cubins = [str(path) for path in demo.cubins(arch) if not path.stem.startswith("smoothing")]
    status, modules = loaded([f"-arch={arch}", *cubins, "-o", "out.cubin"], tmp_path)
    assert status == 0
    assert (tmp_path / "out.cubin").stat().st_size
    assert modules.isdisjoint({*FORBIDDEN, "struct", "_struct"})
    assert {"pylink.pipeline", "pylink.linker"} <= modules
    assert modules.isdisjoint({*RARE, "xxhash"})


@pytest.mark.parametrize("name", sorted(RARE))
def test_what_must_stay_out_is_there_to_load(name: str) -> None:
    assert find_spec(name) is not None


def test_a_link_of_fat_binaries_loads_no_compilers(tmp_path: Path) -> None:
    (tmp_path / "a.fatbin").write_bytes(container(entry(one_kernel().build(), 80)))
    status, modules = loaded(["-arch=sm_80", "a.fatbin", "-o", "out.cubin"], tmp_path)
    assert status == 0
    assert "pylink.inputs.hostobjects" in modules
    assert not any(name.startswith("pylink.subtools") for name in modules)
    assert modules.isdisjoint(FORBIDDEN)


def test_sizes_load_no_classes_of_headers(tmp_path: Path) -> None:
    (tmp_path / "a.fatbin").write_bytes(container(entry(one_kernel().build(), 80)))
    status, modules = loaded(["size", "a.fatbin"], tmp_path)
    assert status == 0
    assert "pylink.inspect.embedded" in modules
    assert modules.isdisjoint({"typing", "pylink.facts.headers"})


@pytest.mark.parametrize(
    "codes", [["-arch=sm_80"], GENCODE, SEVERAL], ids=["arch", "gencode", "several"]
)
def test_a_device_link_step_loads_nothing_heavy(
    codes: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that an overlay's nvcc does, with a toolkit that is named and says its release."""
    monkeypatch.setenv("PYLINK_THREADS", "2")
    tools = tmp_path / "cuda" / "bin"
    tools.mkdir(parents=True)
    for name, text in (("nvcc", ""), ("nvcc.profile", ""), ("nvlink.release", "13.0.88")):
        (tools / name).write_text(text)
    (tmp_path / "a.o").write_bytes(one_kernel().build())
    words = ["dlink", f"--cuda={tmp_path / 'cuda'}", *codes, "-fatbin", "a.o", "-o", "out"]
    status, modules = loaded([*words, "-cudadevrt=none"], tmp_path)
    assert status == 0
    assert (tmp_path / "out").stat().st_size
    assert "pylink.devicelink.step" in modules
    assert modules.isdisjoint({*FORBIDDEN, "importlib", "signal", "sysconfig"})
    assert modules.isdisjoint({"pylink.devicelink.handover", "pylink.devicelink.helptexts"})


def test_a_mistake_loads_no_linker(tmp_path: Path) -> None:
    """Under its own name pylink looks for what was meant, which nobody asks for in a build."""
    for tool, forbidden in (("nvlink", FORBIDDEN), ("pylink", [])):
        status, modules = loaded(["-bogus"], tmp_path, tool)
        assert status == 1
        assert modules.isdisjoint({*forbidden, "pylink.linker", "pylink.pipeline"})


def test_importing_the_package_loads_no_linker() -> None:
    program = "import sys, pylink; assert 'pylink.linker' not in sys.modules; pylink.link"
    subprocess.run([sys.executable, "-c", program], check=True)
