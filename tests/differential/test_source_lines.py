"""Source lines that diagnostics show of files from the real compiler, and nvlink's words beside."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from helpers import oracle
from helpers.words import nvlink_words

import pylink
from pylink.diagnostics import Diagnostic

pytest.importorskip("elftools", reason="pyelftools is not installed")

pytestmark = oracle.needs_oracle

ARCHS = ("75", "90a", "100", "120")
FLAGS = ("-lineinfo", "-G")

UNDEFINED = """\
extern __device__ int lost(int);
extern __device__ int gone[4];
static __device__ __forceinline__ int twice(int x)
{
    return lost(lost(x));
}
__device__ __noinline__ int once(int x)
{
    return lost(x) + 1;
}
extern "C" __global__ void k(int *p)
{
    p[0] = once(p[0]);
    p[1] = twice(p[1]);
    p[2] = gone[p[2]];
}
"""
RECURSIVE = """\
__device__ int odd(int n);
__device__ __noinline__ int even(int n)
{
    return n == 0 ? 1 : odd(n - 1);
}
__device__ __noinline__ int odd(int n)
{
    return n == 0 ? 0 : even(n - 1);
}
extern "C" __global__ void k(int *p)
{
    *p = even(*p);
}
"""
POINTER = """\
typedef int (*Step)(int, void *);
__device__ int walk(int n, void *step)
{
    return n ? ((Step)step)(n - 1, step) : 0;
}
extern "C" __global__ void k(int *p)
{
    *p = walk(*p, (void *)walk);
}
"""
SHARED = """\
extern __shared__ int array[];
__device__ __noinline__ int both(int i)
{
    __shared__ int fixed[8];
    fixed[i] = array[i];
    return fixed[i / 2];
}
extern "C" __global__ void ka(int *p) { p[0] = both(p[1]); }
extern "C" __global__ void kb(int *p) { p[1] = both(p[2]) + array[p[3]]; }
"""


def link(
    arch: str, *cubins: bytes, options: tuple[str, ...] = ()
) -> tuple[list[Diagnostic], list[str]]:
    """The diagnostics of a link, and what it prints in nvlink's format, which nvlink does too."""
    log = io.StringIO()
    inputs = [(f"m{i}.cubin", data) for i, data in enumerate(cubins)]
    keywords: dict[str, object] = {}
    for option in options:
        name, _, value = option.lstrip("-").replace("-", "_").partition("=")
        keywords[name] = value or True
    try:
        made = pylink.link(inputs, arch=f"sm_{arch}", log=log, **keywords)  # type: ignore[arg-type] # flags
        diagnostics = list(made.diagnostics)
    except pylink.LinkError as error:
        diagnostics = list(error.diagnostics)
    printed = nvlink_words(log.getvalue()).replace("pylink ", "nvlink ")
    assert printed == oracle.link(cubins, arch, options).stderr
    return diagnostics, printed.splitlines()


def at(record: Diagnostic) -> tuple[str, int, str | None]:
    """What a record says about which line, and which symbol the caret is under."""
    source = record.source
    assert source is not None
    return record.kind, source.line, record.symbol


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("arch", ARCHS)
def test_undefined_symbols(arch: str, flag: str) -> None:
    diagnostics, _ = link(arch, oracle.compile(UNDEFINED, arch, [flag]))
    lost, gone = sorted(diagnostics, key=lambda record: record.symbol or "")
    uses = [at(record)[1] for record in (lost, *lost.notes) if record.kind != "inlined-here"]
    assert uses == [5, 9]
    inlined = [at(note)[:2] for note in lost.notes if note.kind == "inlined-here"]
    assert inlined == ([("inlined-here", 14)] if flag == "-lineinfo" else [])
    assert at(gone) == ("undefined-reference", 15, "gone")
    assert gone.source is not None
    assert Path(gone.source.file).name == "m.cu"
    assert lost.section in (".text.k", ".text._Z5twicei")


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("arch", ARCHS)
def test_a_recursion(arch: str, flag: str) -> None:
    (warning,), _ = link(arch, oracle.compile(RECURSIVE, arch, [flag]))
    assert at(warning) == ("stack-size", 10, "k")
    calls = {"_Z4eveni": 4, "_Z3oddi": 8}
    found = [at(note) for note in warning.notes]
    assert sorted(found) == sorted(("recursion-here", calls[name], name) for name in calls)


@pytest.mark.parametrize("arch", ARCHS)
def test_a_recursion_through_a_pointer(arch: str) -> None:
    diagnostics, _ = link(arch, oracle.compile(POINTER, arch, ["-G"]))
    notes = {at(note) for warning in diagnostics for note in warning.notes}
    assert notes == {("indirect-call-here", 2, "_Z4walkiPv")}


@pytest.mark.parametrize("arch", ARCHS)
def test_both_sides_of_a_clash(arch: str) -> None:
    first = "\n\n__device__ int v[4];\n__device__ int f(int x) { return x; }\n"
    second = "__device__ int v[8];\n\n__device__ int f(int x) { return x + 1; }\n"
    cubins = [oracle.compile(text, arch, ["-G"]) for text in (first, second)]
    diagnostics, _ = link(arch, *cubins)
    shown = {
        (at(diagnostic), at(diagnostic.notes[-1])) for diagnostic in diagnostics if diagnostic.notes
    }
    assert shown == {
        (("multiple-definition", 3, "_Z1fi"), ("first-defined-here", 4, "_Z1fi")),
        (("multiple-definition", 1, "v"), ("first-defined-here", 3, "v")),
        (("size-mismatch", 1, "v"), ("first-specified-here", 3, "v")),
    }


@pytest.mark.parametrize("arch", ["75", "100"])
def test_a_record_that_names_no_symbol(arch: str) -> None:
    cubin = oracle.compile(SHARED, arch, ["-G"])
    diagnostics, lines = link(arch, cubin, options=("-preserve-relocs",))
    assert lines[-1] == "nvlink fatal   : Internal error: reference to deleted symbol"
    record = diagnostics[-1]
    assert at(record) == ("internal-error", 1, "array")
    assert (record.file, record.section) == ("m0.cubin", ".debug_info")
    assert record.offset
