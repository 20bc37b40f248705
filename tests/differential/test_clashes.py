"""Inputs that disagree about a name: the same messages as nvlink's, in the same order."""

from __future__ import annotations

import io
from itertools import product

import pytest
from differential.check import as_pylink
from helpers import oracle
from helpers.words import nvlink_words

import pylink


def use(name: str, statement: str) -> str:
    return f'extern "C" __global__ void use_{name}(char *q) {{ {statement} }}\n'


def call(name: str, parameter: str, argument: str) -> str:
    return f'extern "C" __device__ int f({parameter}); ' + use(name, f"*q = f({argument});")


def function(addend: int) -> str:
    return f'extern "C" __device__ __noinline__ int f(int x) {{ return x + {addend}; }}\n'


# What two files may say of a variable, with code that uses it.
VARIABLES = {
    "managed": "__managed__ int v;",
    "extern managed": "extern __managed__ int v;",
    "global": "__device__ int v;",
    "extern global": "extern __device__ int v;",
    "constant": "__constant__ int v;",
    "larger": "__device__ int v[3];",
}


MANAGED = [name for name in VARIABLES if "managed" in name]
PLAIN = [name for name in VARIABLES if name not in MANAGED]


def says(name: str, declaration: str) -> str:
    return declaration + "\n" + use(name, "*q = *(volatile int *)&v;")


CLASHES = {
    "constant, then global": (
        'extern "C" { __constant__ int f; }',
        'extern "C" { __device__ int f; }',
    ),
    "other size": ('extern "C" { __device__ int f; }', 'extern "C" { __device__ double f; }'),
    "other size, never defined": (
        'extern "C" __device__ int f; ' + use("a", "*q = f;"),
        'extern "C" __device__ double f; ' + use("b", "*q = f;"),
    ),
    "function, then a managed variable": (function(1), 'extern "C" { __managed__ int f; }'),
    "managed variable, then a function that is called": (
        'extern "C" { __managed__ int f; }',
        function(1) + use("call", "*q = f(1);"),
    ),
    "variable, then a function that is called": (
        'extern "C" { __device__ int f; }',
        function(1) + use("call", "*q = f(1);"),
    ),
    "function, then a variable": (function(1), 'extern "C" { __device__ int f; }'),
    "array, then a variable": (
        'extern "C" __shared__ int f[]; ' + use("read", "*q = f[1];"),
        'extern "C" { __device__ int f; }',
    ),
    "kernel, then a use as a function": (
        'extern "C" __global__ void f(int x) {}',
        call("a", "int x", "1"),
    ),
    "use as a function, then a kernel": (
        call("a", "int x", "1"),
        'extern "C" __global__ void f(int x) {}',
    ),
    "kernel and function": ('extern "C" __global__ void f(int x) {}', function(1)),
    "weak kernel, then a use as a function": (
        "template <class T> __global__ void f(T *q) {} template __global__ void f<char>(char *);",
        "template <class T> __device__ void f(T *q); " + use("a", "f<char>(q);"),
    ),
    "two definitions": (function(1), function(2)),
    "other prototype than the definition": (
        function(1) + use("own", "*q = f(1);"),
        call("b", "int x, int y", "1, 2"),
    ),
    "definition of another prototype": (
        call("a", "int x, int y", "1, 2"),
        function(1) + use("own", "*q = f(1);"),
    ),
    "two prototypes, no definition": (
        call("a", "int x", "1"),
        call("b", "int x, int y", "1, 2"),
    ),
    "definition, then a use of another kind": (
        'extern "C" __device__ int f; ' + use("a", "*q = f;"),
        function(1),
        'extern "C" __constant__ int f; ' + use("b", "*q = f;"),
    ),
    **{
        f"{pair} and {other}": (says("a", VARIABLES[pair]), says("b", VARIABLES[other]))
        for pair, other in [*product(MANAGED, PLAIN), *product(PLAIN, MANAGED)]
    },
}


@oracle.needs_oracle
@pytest.mark.parametrize("sources", CLASHES.values(), ids=CLASHES.keys())
def test_a_clash_is_told_as_nvlink_tells_it(sources: tuple[str, ...]) -> None:
    cubins = [oracle.compile(source, "75") for source in sources]
    expected = oracle.link(cubins, "75")
    assert expected.code
    log = io.StringIO()
    with pytest.raises(pylink.LinkError):
        pylink.link(
            [(f"m{i}.cubin", cubin) for i, cubin in enumerate(cubins)], arch="sm_75", log=log
        )
    assert nvlink_words(log.getvalue()) == as_pylink(expected.stderr)
