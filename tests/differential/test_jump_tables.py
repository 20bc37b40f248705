"""Jump tables and constants in several files: links equal nvlink's, byte for byte."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest
from differential.check import as_pylink
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Symbol, SymbolTableSection
from helpers import oracle, programs_copies, programs_switch
from helpers.compare import compare

from pylink.command.cli import main

pytestmark = oracle.needs_oracle

ARCHS = ("75", "90a", "100")

# The compiler lists the tables of this function in another order than they lie in its pool.
UNORDERED = """
__device__ __noinline__ int f(int k, int j, int *p) {
    int r = 0;
    for (int i = 0; i < j; i++) {
        switch (k) {
        case 0: r += p[0]; break;
        case 1: r ^= p[1] * 3; break;
        case 2:
            switch (j) {
            case 0: p[3] = r; break;
            case 1: p[4] *= r; break;
            case 2: __syncthreads(); break;
            case 3: r -= p[9]; break;
            case 4: return 3;
            }
            break;
        case 3: r = p[r & 3]; break;
        case 4: r *= 7 + p[6]; break;
        case 5: p[5] = 9; break;
        }
        if (p[7])
            switch (p[8]) {
            case 0: r += p[20]; break;
            case 1: r ^= p[21] * 3; break;
            case 2: p[4] = 1; break;
            case 3: r = p[r & 7]; break;
            case 4: r *= 17 + p[26]; break;
            }
        k = p[i];
    }
    return r;
}
extern "C" __global__ void k(int *p, int a, int b) { p[0] = f(a, b, p); }
extern "C" __global__ void l(int *p, int a) { p[1] = f(a, a, p); }
"""

OPTIONS = ("", "-r", "-g", "-preserve-relocs", "--kernels-used=k0_0")


def cubins(seed: int) -> list[str]:
    """The cubins of a program, in the working directory."""
    names = []
    for number, text in enumerate(programs_switch.generate(seed)):
        names.append(f"m{number}.cubin")
        image = oracle.compile(text, ARCHS[seed % len(ARCHS)], name=f"m{number}.cu")
        Path(names[-1]).write_bytes(image)
    return names


def symbols(image: bytes) -> list[Symbol]:
    table = ELFFile(io.BytesIO(image)).get_section_by_name(".symtab")
    assert isinstance(table, SymbolTableSection)
    return list(table.iter_symbols())


def differences(seed: int, options: str, names: list[str]) -> list[str]:
    """How the links differ; what nvlink refuses for an error of its own has to link here."""
    argv = [f"-arch=sm_{ARCHS[seed % len(ARCHS)]}", *options.split(), *names, "-o", "out.cubin"]
    Path("out.cubin").unlink(missing_ok=True)
    expected = oracle.run_nvlink(argv, Path(), "out.cubin")
    assert main(argv) == 0
    if expected.image is None:
        assert "Internal error" in expected.stderr
        return []
    return compare(Path("out.cubin").read_bytes(), expected.image)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("seed", range(24))
def test_links_equal_nvlinks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, options: str
) -> None:
    monkeypatch.chdir(tmp_path)
    names = cubins(seed)
    assert differences(seed, options, names) == []
    assert differences(seed, options, names[::-1]) == []


@pytest.mark.parametrize("options", ["", "-r", "-g"])
@pytest.mark.parametrize("seed", range(24))
def test_second_stages_equal_nvlinks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, options: str
) -> None:
    monkeypatch.chdir(tmp_path)
    *names, last = cubins(seed)
    argv = [f"-arch=sm_{ARCHS[seed % len(ARCHS)]}", "-r", *names, "-o", "first.cubin"]
    first = oracle.run_nvlink(argv, tmp_path, "first.cubin").image
    assert first is not None
    Path("first.cubin").write_bytes(first)
    assert differences(seed, options, ["first.cubin", last]) == []


@pytest.mark.parametrize("plain", ["0000", "1000"])
@pytest.mark.parametrize("arch", ARCHS)
def test_copies_equal_nvlinks_in_every_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arch: str, plain: str
) -> None:
    monkeypatch.chdir(tmp_path)
    sources = programs_copies.generate(*(digit == "1" for digit in plain))
    for number, text in enumerate(sources):
        image = oracle.compile(text, arch, name=f"m{number}.cu")
        Path(f"m{number}.cubin").write_bytes(image)
    links = [
        ("r1", "-r m0.cubin m1.cubin"),
        ("r2", "-r m2.cubin r1.cubin"),
        ("all", "m0.cubin m1.cubin m2.cubin m3.cubin"),
        ("chosen", "--kernels-used=k0 m0.cubin m1.cubin m2.cubin"),
        ("behind", "m2.cubin r1.cubin m3.cubin"),
    ]
    links += [("r3", "-r r1.cubin m2.cubin"), ("first", "r1.cubin m2.cubin m3.cubin")]
    for name, words in links:
        argv = [f"-arch=sm_{arch}", *words.split(), "-o", f"{name}.cubin"]
        expected = oracle.run_nvlink(argv, tmp_path, f"{name}.cubin")
        assert expected.image is not None
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            assert main(argv) == 0
        assert compare(Path(f"{name}.cubin").read_bytes(), expected.image) == []
        assert said.getvalue() == as_pylink(expected.stderr)


@pytest.mark.parametrize("stages", [1, 2])
def test_tables_out_of_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stages: int) -> None:
    monkeypatch.chdir(tmp_path)
    image = oracle.compile(UNORDERED, "100")
    places = [s["st_value"] for s in symbols(image) if s.name.startswith("_Z1fiiPi.const_opt.")]
    assert places != sorted(places)
    if stages == 2:
        first = oracle.link([image], "100", ["-r"]).image
        assert first is not None
        image = first
    Path("m.cubin").write_bytes(image)
    assert differences(ARCHS.index("100"), "", ["m.cubin"]) == []
