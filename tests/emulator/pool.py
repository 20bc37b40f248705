"""Programs with defined results: modules of CUDA C++, and in Python what each of them computes.

A program is a main module with the parts that it calls and others that nothing calls, in any order.
All arithmetic is of unsigned 32-bit numbers, so that C++ defines each result. Parts have what makes
links interesting: templates and inline functions that every module has a copy of, local functions
of one name, tables of functions in constant and global memory, jump tables, virtual functions,
recursion, shared memory, literals of double precision, variables of other modules, state in global
memory. What nvlink is known to link wrong is left to `test_rows_*.py`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from helpers.programs import Module, Program

MASK = 0xFFFFFFFF
LANES = 32
Values = list[int]

# In every module: the linker keeps one copy of each. Flags differ, and so does the copies' code.
COMMON = r"""
typedef unsigned u;
template <int N> __device__ __noinline__ u mixed(u x) {
    for (int i = 0; i < N; i++) x = x * 31u + (x >> 3 ^ N);
    return x;
}
template <int N> __device__ u seeds[4] = {N, N * 3 + 1, N * 7 + 2, N ^ 21};
inline __device__ __noinline__ u chosen(u x) {
    switch (x % 11) {
    case 0: return x + 3;
    case 1: return x * 5;
    case 2: return x ^ 0x3c;
    case 3: return x - seeds<3>[x & 3];
    case 4: return x << 1 | 1;
    case 5: return ~x;
    case 6: return x / 3;
    case 7: return x % 1000 + seeds<5>[x & 3];
    case 8: return mixed<2>(x);
    case 9: return x >> 5;
    }
    return x * x;
}
inline __device__ __noinline__ u twice(u x) { return mixed<1>(x) + mixed<3>(x); }
typedef u (*F)(u);
template <int N> __device__ F functions[3] = {chosen, twice, mixed<N + 3>};
"""


def mixed(n: int, x: int) -> int:
    for _ in range(n):
        x = x * 31 + (x >> 3 ^ n) & MASK
    return x


def seeds(n: int, i: int) -> int:
    return (n, n * 3 + 1, n * 7 + 2, n ^ 21)[i]


def chosen(x: int) -> int:
    cases: list[Callable[[], int]] = [
        lambda: x + 3,
        lambda: x * 5,
        lambda: x ^ 0x3C,
        lambda: x - seeds(3, x & 3),
        lambda: x << 1 | 1,
        lambda: ~x,
        lambda: x // 3,
        lambda: x % 1000 + seeds(5, x & 3),
        lambda: mixed(2, x),
        lambda: x >> 5,
        lambda: x * x,
    ]
    return cases[x % 11]() & MASK


def twice(x: int) -> int:
    return mixed(1, x) + mixed(3, x) & MASK


def tables(n: int, i: int, x: int) -> int:
    return (chosen, twice, lambda x: mixed(n + 3, x))[i](x)


@dataclass(frozen=True)
class Part:
    """One module: its text, and what its function makes of the values of all lanes."""

    text: str
    compute: Callable[[Values], Values]
    flags: tuple[str, ...] = ()


def each(function: Callable[[int], int]) -> Callable[[Values], Values]:
    return lambda values: [function(value) & MASK for value in values]


def _functions(x: int) -> int:
    local = (lambda x: x + 17, lambda x: x * 9, chosen)
    return local[x % 3](x) ^ local[(x >> 4) % 3](x + 1 & MASK)


def _shared(values: Values) -> Values:
    return [values[i ^ 5] + 3 * values[i ^ 16] & MASK for i in range(LANES)]


def _depth(n: int, x: int) -> int:
    return x if n == 0 else _depth(n - 1, x * 3 + n & MASK) + _depth(n // 2, x) & MASK


def _literals(x: int) -> int:
    a = (x & 0xFFFF) * 1.0625e3 + 0.333251953125
    b = a * 7.450580596923828125e-9 + 98765.4321 - (x >> 20) * 0.1
    return int(b * 3.0e3)


PARTS = [
    Part(
        """
static __device__ __noinline__ u helper(u x) { return x + 17u; }
static __device__ __noinline__ u other(u x) { return x * 9u; }
static __device__ __noinline__ u third(u x) { return chosen(x); }
// Of a size that links of selected kernels do not fold.
static __constant__ F local[5] = {helper, other, third};
__device__ F global[3] = {helper, other, chosen};
__device__ u part0(u x) { return local[x % 3](x) ^ global[(x >> 4) % 3](x + 1); }
""",
        each(_functions),
    ),
    Part(
        """
static __device__ __noinline__ u helper(u x) { return chosen(x ^ 0x5555) + 1; }
__device__ u part1(u x) { return helper(x) + chosen(x) * 2u; }
""",
        each(lambda x: chosen(x ^ 0x5555) + 1 + chosen(x) * 2),
        ("-O1",),
    ),
    Part(
        """
static __device__ __noinline__ u depth(u n, u x) {
    return n == 0 ? x : depth(n - 1, x * 3u + n) + depth(n / 2, x);
}
__device__ u part2(u x) { return depth(x & 3, x); }
""",
        each(lambda x: _depth(x & 3, x)),
    ),
    Part(
        """
__device__ u part3(u x) {
    extern __shared__ u s[];
    s[threadIdx.x] = x;
    __syncthreads();
    u r = s[threadIdx.x ^ 5] + 3u * s[threadIdx.x ^ 16];
    __syncthreads();
    return r;
}
""",
        _shared,
        ("-maxrregcount=32",),
    ),
    Part(
        """
__device__ u part4(u x) {
    double a = (double)(x & 0xffff) * 1.0625e3 + 0.333251953125;
    double b = __dadd_rn(__dadd_rn(__dmul_rn(a, 7.450580596923828125e-9), 98765.4321),
                         -__dmul_rn((double)(x >> 20), 0.1));
    return (u)(long long)__dmul_rn(b, 3.0e3);
}
""",
        each(_literals),
    ),
    Part(
        """
struct Shape { __device__ virtual u area(u x) { return x + 1; } u side; };
struct Square : Shape { __device__ u area(u x) override { return side * side + mixed<2>(x); } };
struct Line : Shape { __device__ u area(u x) override { return side ^ twice(x); } };
__device__ u part5(u x) {
    Shape shape; Square square; Line line;
    square.side = x & 255; line.side = x >> 8;
    Shape *all[3] = {&shape, &square, &line};
    return all[x % 3]->area(x) + all[(x >> 3) % 3]->area(x >> 1);
}
""",
        each(lambda x: _area(x % 3, x, x) + _area((x >> 3) % 3, x, x >> 1)),
        ("-O0",),
    ),
    Part(
        """
extern __device__ u shared_data[8];
__constant__ u weights[64] = {5, 7, 11, 13, 17, 19, 23, 29};
__constant__ u *behind[5] = {shared_data + 1, shared_data + 4};
__device__ u part6(u x) {
    return weights[x & 7] * shared_data[x >> 3 & 7] + *(behind[x & 1]) + weights[x & 63];
}
""",
        each(
            lambda x: (
                _weights(x & 7) * (3 * (x >> 3 & 7) + 1) + (13 if x & 1 else 4) + _weights(x & 63)
            )
        ),
    ),
    Part(
        """
__device__ u shared_data[8] = {1, 4, 7, 10, 13, 16, 19, 22};
__device__ u part7(u x) {
    u r = functions<1>[x % 3](x);
    return r + functions<2>[(x >> 2) % 3](r);
}
""",
        each(lambda x: _from_tables(x)),  # noqa: PLW0108 -- defined below,
    ),
]


def _area(kind: int, whole: int, x: int) -> int:
    if kind == 0:
        return x + 1
    side = whole & 255 if kind == 1 else whole >> 8
    return side * side + mixed(2, x) if kind == 1 else side ^ twice(x)


def _weights(i: int) -> int:
    return (5, 7, 11, 13, 17, 19, 23, 29)[i] if i < 8 else 0


def _from_tables(x: int) -> int:
    r = tables(1, x % 3, x)
    return r + tables(2, (x >> 2) % 3, r)


# The parts that each main module calls, in order. Part 6 uses what part 7 defines.
MAINS = ((0, 1, 3), (2, 4, 7), (5, 6, 7), (3, 5, 0), (1, 7, 6), (4, 2, 5, 3))


def _main_text(index: int) -> str:
    calls = MAINS[index]
    declared = "".join(f"extern __device__ u part{k}(u);\n" for k in calls)
    chain = "".join(f"    x = part{k}(x) + {n};\n" for n, k in enumerate(calls))
    pointers = ", ".join(f"part{k}" for k in calls if k != 3)
    count = sum(k != 3 for k in calls)
    return f"""
{declared}
static __device__ __noinline__ u helper(u x) {{ return x * 3u + {index}; }}
__device__ u state{index} = {index * 100};
__constant__ F choices{index}[{count}] = {{{pointers}}};
extern "C" __global__ void chain{index}(u *p, u n) {{
    u x = p[threadIdx.x] + n;
{chain}    atomicAdd(&state{index}, 1u);
    p[threadIdx.x] = helper(x);
}}
extern "C" __global__ void table{index}(u *p, u n) {{
    extern __shared__ u dynamic[];
    u i = threadIdx.x;
    dynamic[i] = choices{index}[(p[i] + n) % {count}](p[i]);
    __syncthreads();
    p[i] = dynamic[31 - i] + mixed<4>(i);
}}
"""


def chain(index: int, values: Values, n: int) -> Values:
    """What the kernel `chain` of a main module leaves."""
    values = [value + n & MASK for value in values]
    for place, k in enumerate(MAINS[index]):
        values = [value + place & MASK for value in PARTS[k].compute(values)]
    return [value * 3 + index & MASK for value in values]


def table(index: int, values: Values, n: int) -> Values:
    """What the kernel `table` of a main module leaves."""
    calls = [k for k in MAINS[index] if k != 3]
    found = []
    for value in values:
        k = calls[(value + n & MASK) % len(calls)]
        found.append(PARTS[k].compute([value] * LANES)[0])
    return [found[31 - i] + mixed(4, i) & MASK for i in range(LANES)]


KERNELS: dict[str, Callable[[int, Values, int], Values]] = {"chain": chain, "table": table}
_FLAGS = ((), ("-O1",), (), ("-O0",), (), ())


def generate(seed: int) -> Program:
    """A main module, the parts that it needs and some that it does not, in an order of its own."""
    rng = random.Random(f"pool {seed}")
    main = seed % len(MAINS)
    needed = set(MAINS[main]) | ({7} if 6 in MAINS[main] else set())
    others = [k for k in range(len(PARTS)) if k not in needed and k != 6]
    chosen_parts = sorted(needed | set(rng.sample(others, rng.randint(0, min(3, len(others))))))
    modules = [Module(f"part{k}.cu", COMMON + PARTS[k].text, PARTS[k].flags) for k in chosen_parts]
    modules.insert(0, Module(f"main{main}.cu", COMMON + _main_text(main), _FLAGS[main]))
    if seed >= len(MAINS):
        rng.shuffle(modules)
    return Program(
        seed,
        0,
        tuple(modules),
        ("pool",),
        tuple(f"{name}{main}" for name in KERNELS),
        (f"state{main}",),
        False,
    )
