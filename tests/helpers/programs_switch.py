"""Seeded random programs of several files whose functions have jump tables.

Functions are external, local to a file, or weak with a copy in several files, some of which differ.
Every file declares functions of others in an order of its own. The results of the code do not
matter; each `switch` becomes a table in `.nv.constant2`.
"""

from __future__ import annotations

from random import Random

KINDS = ("external", "external", "weak", "local")
QUALIFIERS = {
    "external": 'extern "C" __device__ __noinline__',
    "weak": 'extern "C" inline __device__ __noinline__',
    "local": "static __device__ __noinline__",
}


def switch(rng: Random, cases: int) -> str:
    """Return a switch with cases so different that the compiler makes a jump table."""
    text = "switch (x) {\n"
    for case in range(cases):
        text += (
            f"case {case}: x = x * {rng.randrange(3, 99)} + p[{rng.randrange(50)}];"
            f" p[{rng.randrange(50)}] = x ^ {rng.randrange(9999)};"
            f" if (x & {1 << rng.randrange(5)}) p[x & 7] += {case}; break;\n"
        )
    return text + "default: x = -x; }\n"


def generate(seed: int) -> list[str]:
    """Return the CUDA sources of a program, in link order."""
    rng = Random(f"switches {seed}")
    files = range(rng.randrange(2, 4))
    functions = range(rng.randrange(3, 7))
    kinds = {function: rng.choice(KINDS) for function in functions}
    homes = {function: rng.choice(files) for function in functions}
    alike = rng.random() < 0.5
    bodies = {function: rng.random() for function in functions}
    sources = []
    for file in files:
        declared = [f for f in functions if kinds[f] == "external" and homes[f] != file]
        defined = [
            f for f in functions if (rng.random() < 0.7 if kinds[f] == "weak" else homes[f] == file)
        ]
        rng.shuffle(declared)
        rng.shuffle(defined)
        text = "".join(f'extern "C" __device__ int f{f}(int *p, int x);\n' for f in declared)
        for function in defined:
            shared = kinds[function] == "external" or alike
            body = Random(f"{bodies[function]} {0 if shared else file}")
            table = switch(body, body.randrange(5, 12))
            text += f"{QUALIFIERS[kinds[function]]} int f{function}(int *p, int x) {{\n"
            text += f"{table}return x; }}\n"
        for kernel in range(rng.randrange(1, 3)):
            called = [f for f in declared + defined if rng.random() < 0.8]
            rng.shuffle(called)
            switch_text = switch(rng, rng.randrange(5, 12)) if rng.random() < 0.4 else ""
            calls = "".join(f"p[{i}] = f{f}(p + {i}, x);\n" for i, f in enumerate(called))
            text += f'extern "C" __global__ void k{file}_{kernel}(int *p, int x) {{\n'
            text += f"{switch_text}{calls}p[9] = x; }}\n"
        sources.append(text)
    return sources
