"""Literals and jump tables of functions that do not fit into a kernel's constant bank.

The bank has 64 KiB. Whose tables a kernel has is decided by the calls it makes, over all files, so
only a linker can see that they are too many.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from helpers import oracle
from helpers.compare import compare
from helpers.side_by_side import OURS, THEIRS, nvlink, own_messages, pylink

pytestmark = oracle.needs_oracle

ARCHS = ["75", "89", "90a", "100", "120"]  # literals before sm_90, tables on all
LIMIT = 0x10000
WORD = 4

DECLARATION = ".extern .func (.param .b32 r) {}(.param .b32 a);\n"
CALL = (
    "{{ .param .b32 A; .param .b32 R; st.param.b32 [A], %r1; call (R), {}, (A);"
    " ld.param.b32 %r3, [R]; add.u32 %r2, %r2, %r3; }}\n"
)
REGISTERS = "{ .reg .b32 %r<4>; .reg .b64 %rd<2>; .reg .pred %p<2>;\n"


def table(cases: int) -> str:
    """A branch through a jump table of that many words; `%r1` chooses, `%r2` gets a result."""
    if not cases:
        return "mov.u32 %r2, 0;\n"
    labels = ", ".join(f"L{case % 4}" for case in range(cases))
    text = f"mov.u32 %r2, 0; setp.ge.u32 %p1, %r1, {cases}; @%p1 bra E;\n"
    text += f"ts: .branchtargets {labels};\nbrx.idx %r1, ts;\n"
    for case in range(4):
        text += f"L{case}: mul.lo.u32 %r2, %r1, {7 * case + 3}; xor.b32 %r2, %r2, {case}; bra E;\n"
    return text + "E:\n"


def function(name: str, cases: int, linkage: str = "visible") -> str:
    head = f".{linkage} .func (.param .b32 r) {name}(.param .b32 a)"
    return (
        f"{head} {REGISTERS} ld.param.u32 %r1, [a]; {table(cases)} st.param.b32 [r], %r2; ret; }}"
    )


def kernel(name: str, cases: int, calls: Sequence[str], linkage: str = "visible") -> str:
    head = f".{linkage} .entry {name}(.param .u64 p)"
    body = f"ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1];\n{table(cases)}"
    body += "".join(CALL.format(callee) for callee in calls)
    return f"{head} {REGISTERS} {body} st.global.u32 [%rd1], %r2; ret; }}\n"


def write(folder: Path, arch: str, **files: str) -> list[str]:
    """Cubins of PTX, in order; their names."""
    head = f".version 9.0\n.target sm_{oracle.PTX_ARCH[arch]}\n.address_size 64\n"
    for name, text in files.items():
        cubin = oracle.compile(head + text, arch, name=f"{name}.ptx")
        (folder / f"{name}.cubin").write_bytes(cubin)
    return [f"{name}.cubin" for name in files]


def calling(*names: str) -> str:
    return "".join(map(DECLARATION.format, names))


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("excess", [0, 1])
def test_a_bank_is_full_and_one_word_more(arch: str, excess: int, tmp_path: Path) -> None:
    half = LIMIT // WORD // 2
    files = write(
        tmp_path,
        arch,
        k=calling("f", "g") + kernel("k", 0, ["f", "g"]),
        f=function("f", half),
        g=function("g", half + excess),
    )
    words = [f"-arch=sm_{arch}", *files]
    theirs, ours = nvlink(tmp_path, words), pylink(tmp_path, words)
    assert ours == theirs
    assert theirs.code == (255 if excess else 0)
    assert (tmp_path / OURS).exists() is not excess
    if not excess:
        assert compare((tmp_path / OURS).read_bytes(), (tmp_path / THEIRS).read_bytes()) == []


@pytest.mark.parametrize("options", [[], ["-g"], ["-r"], ["--kernels-used=kz"]], ids=" ".join)
@pytest.mark.parametrize("arch", ARCHS)
def test_many_kernels_are_named_in_nvlinks_order(
    arch: str, options: list[str], tmp_path: Path
) -> None:
    both = calling("f", "g")
    files = write(
        tmp_path,
        arch,
        a=both
        + kernel("kz", 0, ["f", "g"])
        + kernel("ky", 7, ["f", "g"])
        + kernel("kx", 8, ["g", "f"])
        + kernel("one", 8, ["g"]),
        b=both + kernel("ka", 9, ["f", "g"]) + kernel("kb", 0, ["f", "g"]),
        f=function("f", 9000),
        g=function("g", 9000),
    )
    words = [f"-arch=sm_{arch}", *options, *files]
    theirs = nvlink(tmp_path, words)
    assert pylink(tmp_path, words) == theirs
    assert len(theirs.lines) == {"": 5, "-g": 5, "-r": 0, "--kernels-used=kz": 1}[" ".join(options)]


@pytest.mark.parametrize("options", [[], ["-r"]], ids=" ".join)
@pytest.mark.parametrize("arch", ARCHS)
def test_copies_that_lost_count(arch: str, options: list[str], tmp_path: Path) -> None:
    weak = function("f", 9000, "weak") + kernel("k", 9000, [], "weak")
    files = write(tmp_path, arch, a=weak + kernel("m", 3, ["f"]), b=weak)
    words = [f"-arch=sm_{arch}", *options, *files]
    theirs = nvlink(tmp_path, words)
    assert pylink(tmp_path, words) == theirs
    assert theirs.code == 255
    assert len(theirs.lines) == 2


def test_it_is_told_whose_they_are(tmp_path: Path) -> None:
    files = write(
        tmp_path,
        "75",
        a=calling("f", "g") + kernel("k", 5, ["f", "g"]),
        f=function("f", 9000),
        g=function("g", 9500),
    )
    assert own_messages(tmp_path, ["-arch=sm_75", *files]) == (
        "a.cubin(.text.k+0x0): error: Entry function 'k' uses too much data for compiler-generated "
        "constants; please recompile with -Xptxas --disable-optimizer-constants\n"
        "Note: 74020 bytes needed, 65536 available (8484 over the limit)\n"
        "g.cubin(.text.g+0x0): note: 'g' takes 38000 bytes\n"
        "f.cubin(.text.f+0x0): note: 'f' takes 36000 bytes\n"
        "a.cubin(.text.k+0x0): note: 'k' takes 20 bytes\n"
        '1 error detected in the link of "ours.out".'
    )


def test_a_long_table_ends_with_a_sum(tmp_path: Path) -> None:
    names = [f"f{number}" for number in range(14)]
    files = write(
        tmp_path,
        "90a",
        k=calling(*names) + kernel("k", 0, names),
        f="".join(function(name, 1300) for name in names),
    )
    lines = own_messages(tmp_path, ["-arch=sm_90a", *files]).splitlines()
    assert sum("takes 5200 bytes" in line for line in lines) == 10
    assert "Note: 4 others take 20800 bytes" in lines


VARIABLES = {
    "a": "__constant__ char large[40000]; __device__ int more(int);\n"
    "__global__ void k(int *p) { __shared__ int own[9000]; own[p[0]] = p[1];"
    " p[2] = own[p[3]] + large[p[4]] + more(p[5]); }",
    "b": "__constant__ char larger[50000];\n"
    "__device__ int more(int x) { __shared__ int mine[60000]; mine[x] = x;"
    " return mine[x + 1] + larger[x]; }",
}


def test_variables_too_large_are_listed(tmp_path: Path) -> None:
    files = []
    for name, text in VARIABLES.items():
        files.append(f"{name}.cubin")
        (tmp_path / files[-1]).write_bytes(oracle.compile(text, "90a", name=f"{name}.cu"))
    words = ["-arch=sm_90a", *files]
    assert pylink(tmp_path, words) == nvlink(tmp_path, words)
    text = own_messages(tmp_path, words)
    assert "Note: 276000 bytes needed, 232448 available (43552 over the limit)" in text
    assert "note: 'more(int)::mine' takes 240000 bytes" in text
    assert "note: 'k(int *)::own' takes 36000 bytes" in text
    assert "b.cubin(.nv.constant3+0x0): note: 'larger' takes 50000 bytes" in text
    assert "a.cubin(.nv.constant3+0x0): note: 'large' takes 40000 bytes" in text
