"""`pylink size` beside the tools of the toolkit: what they make has the bytes that it says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from helpers import oracle
from helpers.sized import linked

from pylink.size import measure
from pylink.size.experiments import Experiments
from pylink.size.recompress import zstd_bytes
from pylink.size.reductions import reductions

pytestmark = oracle.needs_oracle

SOURCE = """
template<int N> __device__ float step(float x) {{ return x * N + {0}.f; }}
__global__ void k{0}(float* p) {{
  float x = p[threadIdx.x];
{1}
  p[threadIdx.x] = x;
}}
"""


def tool(name: str) -> str:
    found = oracle.optional_tool(name)
    assert found is not None, f"{name} is not installed"
    return found


def cubins(folder: Path) -> dict[str, Path]:
    """A cubin for each of three targets, of different sizes."""
    made = {}
    for number, arch in enumerate(("sm_80", "sm_90", "sm_120")):
        body = "\n".join(f"  x = step<{i}>(x) + p[{i}];" for i in range(20 * (number + 1)))
        made[arch] = folder / f"{arch}.cubin"
        made[arch].write_bytes(
            oracle.compile(SOURCE.format(number, body), arch.removeprefix("sm_"))
        )
    return made


def fatbin(folder: Path, files: dict[str, Path], *options: str) -> Path:
    made = folder / "made.fatbin"
    images = [
        f"--image3=kind=elf,sm={arch.removeprefix('sm_')},file={path}"
        for arch, path in files.items()
    ]
    command = [tool("fatbinary"), "-64", *options, f"--create={made}", *images]
    subprocess.run(command, check=True, capture_output=True)
    return made


@pytest.mark.parametrize("mode", ["none", "speed", "default", "balance", "size"])
def test_entries_are_those_that_the_tools_made_and_list(mode: str, tmp_path: Path) -> None:
    files = cubins(tmp_path)
    made = fatbin(tmp_path, files, "--compress-all", f"--compress-mode={mode}")
    sizes = measure([str(made)])
    entries = [leaf for leaf in sizes.leaves if leaf.target]
    assert {leaf.target: leaf.unpacked for leaf in entries} == {
        arch: path.stat().st_size + (-path.stat().st_size % 8 if mode == "none" else 0)
        for arch, path in files.items()
    }
    assert sum(leaf.installed for leaf in sizes.leaves) == made.stat().st_size
    listed = subprocess.run(
        [tool("cuobjdump"), "-lelf", made], check=True, capture_output=True, text=True
    ).stdout
    assert sorted(re.findall(r"sm_\d+", listed)) == sorted(leaf.target for leaf in entries)


def test_the_mode_that_is_advised_makes_the_bytes_that_are_said(tmp_path: Path) -> None:
    for arch, path in cubins(tmp_path).items():
        options = "--compress-all", "--compress-mode=default"
        sizes = measure([str(fatbin(tmp_path, {arch: path}, *options))])
        (leaf,) = [leaf for leaf in sizes.leaves if leaf.target]
        payload = path.read_bytes()
        measured = zstd_bytes(payload, 0, len(payload), deflate=False)
        assert measured is not None
        assert measured[0] == leaf.installed - leaf.header


# What a rule advises, and the modes of the same entries before and after it was done.
DONE = {
    "stored-cubins": ("none", "default"),
    "lz4-cubins": ("speed", "default"),
    "size-mode": ("default", "size"),
}


@pytest.mark.parametrize("rule", DONE)
def test_compressing_as_advised_saves_what_is_said(rule: str, tmp_path: Path) -> None:
    files = cubins(tmp_path)
    before, after = (
        fatbin(tmp_path, files, "--compress-all", f"--compress-mode={mode}").read_bytes()
        for mode in DONE[rule]
    )
    path = tmp_path / "before.fatbin"
    path.write_bytes(before)
    assert saved(path, rule) == len(before) - len(after)


def test_leaving_out_ptx_as_advised_saves_what_is_said(tmp_path: Path) -> None:
    """PTX for 9.0 stands beside code for that, and the next PTX is for 10.0."""
    files = {"sm_90": tmp_path / "sm_90.cubin"}
    files["sm_90"].write_bytes(linked(90))  # PTX beside relocatable code is for other links
    text = {}
    for arch in ("90", "100"):
        text[arch] = tmp_path / f"compute_{arch}.ptx"
        head = f".version 9.0\n.target sm_{arch}\n.address_size 64\n"
        text[arch].write_text(head + ".visible .entry k() { ret; }\n")
    made = []
    for archs in (("90", "100"), ("100",)):
        images = [f"--image3=kind=ptx,sm={arch},file={text[arch]}" for arch in archs]
        made.append(fatbin(tmp_path, files, *images).read_bytes())
    path = tmp_path / "before.fatbin"
    path.write_bytes(made[0])
    assert saved(path, "unreached-ptx") == len(made[0]) - len(made[1])


def saved(path: Path, rule: str) -> int:
    """Installed bytes that a rule promises for a file."""
    sizes = measure([str(path)], recompress=True, experiments=Experiments(thorough=True))
    (line,) = [line for line in reductions(sizes) if line.rule == rule]
    return line.installed
