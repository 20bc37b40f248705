"""The file and the options that the tool note of an image records are those nvlink records."""

from __future__ import annotations

import shlex
import struct
from pathlib import Path

import pytest
from helpers import oracle

from pylink import __version__
from pylink.command.cli import main
from pylink.inspect.image import Image

pytestmark = oracle.needs_oracle

A = "__device__ int f(int x) { return x; } __global__ void k(int *p) { *p = f(*p); }"

LINES = """
-m 64
-m 0x40 -v -v
-l foo -L /tmp
-L . -l a,b -lc -l '"d,e",f' -L=
-v -w -disable-infos -Werror -extrawarn -report-arch
-suppress-arch-warning -suppress-stack-size-warning
-kernels-used k,q -kernels-used=k -variables-used g
-kernels-used= -use-host-info
-ignore-host-info -keep-system-libraries -preserve-relocs
-cpu-arch X86 -cpu-arch unknown
-dump-callgraph-no-demangle -r
-time t --register-link-binaries=reg -optf f
-g
-g -time t --register-link-binaries=reg -optf f -v
-g -suppress-debug-info -w -cpu-arch X86_64 -l x -m 64 -r
-g -o p
-uumn -disable-smem-reservation true -v
"""


def tool_note(image: bytes) -> list[str]:
    """The strings of the tool's own note, which is the first."""
    section = next(s for s in Image(image).sections if s.name == ".note.nv.tkinfo")
    name_size, size, _ = struct.unpack_from("<3I", image, section.offset)
    start = section.offset + 12 + name_size
    desc = image[start : start + size]
    _, *offsets = struct.unpack_from("<6I", desc)
    return [desc[24 + at :].split(b"\0")[0].decode() for at in offsets]


@pytest.mark.parametrize(
    "options", ["-v2", "-v2 -v -w", "-astoolspatch -r -v2 -Xptxas -O1", "-g -v2"]
)
@pytest.mark.parametrize("release", oracle.others()[-1:])
def test_recorded_options_of_later_releases(
    release: str, options: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with oracle.release(release):
        source = "__device__ int f(int x) { return x; }"
        cubin = oracle.assemble(oracle.compile_ptx(source, "90"), "90", ["-astoolspatch"])
        Path("a.cubin").write_bytes(cubin)
        words = ["-arch=sm_90", "a.cubin", "-o", "o", *options.split()]
        expected = oracle.run_nvlink(words, tmp_path, "o")
    assert expected.image is not None
    assert main([*words, f"--nvlink-version={release}"], tool="nvlink") == 0
    assert tool_note(Path("o").read_bytes())[4] == tool_note(expected.image)[4]


@pytest.mark.parametrize("line", LINES.strip().splitlines())
def test_recorded_options(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.cubin").write_bytes(oracle.compile(A, "90"))
    Path("f").write_text("-preserve-relocs")
    words = ["-arch=sm_90", "a.cubin", "-o", "o", *shlex.split(line)]
    output = "p" if "-o p" in line else "o"
    expected = oracle.run_nvlink(words, tmp_path, output)
    assert expected.image is not None
    # Under its name, libraries that are missing are no error.
    assert main(words, tool="nvlink") == 0
    file, tool, version, _, options = tool_note(Path(output).read_bytes())
    theirs = tool_note(expected.image)
    assert (file, options) == (theirs[0], theirs[4])
    assert file == (output if "-g" in words else "")
    assert tool == "pylink"
    assert __version__ in version
