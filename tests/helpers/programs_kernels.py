"""Program features that are kernels on their own: control flow, math, runtime calls."""

from __future__ import annotations

from helpers.programs_common import GUARD, element_type
from helpers.programs_draft import Draft, Function, ModuleDraft


def _statement(draft: Draft, depth: int, v: str, elements: str) -> str:
    """Return a random statement over the variable `v`, the index i and the array `elements`."""
    rng = draft.rng
    kind = rng.randrange(7 if depth else 3)
    if kind == 0:
        return f"{v} = {v} * {rng.randint(2, 9)} + i;"
    if kind == 1:
        return f"{v} += {elements}[i + {rng.randint(0, 64)}];"
    if kind == 2:
        return f"{elements}[i] = {v};"
    inner = "\n".join(_statement(draft, depth - 1, v, elements) for _ in range(rng.randint(1, 3)))
    counter = draft.name("j")
    return {
        3: f"if ({v} > {rng.randint(0, 99)}) {{ {inner} }}",
        4: f"if (i & {1 << rng.randrange(5)}) {{ {inner} }} else {{ {v} -= i; }}",
        5: f"for (int {counter} = 0; {counter} < n; {counter}++) {{ {inner} }}",
        6: f"while ({v} < n) {{ {inner} {v} += 1 + i; }}",
    }[kind]


def plain_kernel(draft: Draft, module: ModuleDraft | None = None) -> None:
    """Add a kernel with guard, loops or branches, and no call."""
    module = module or draft.module()
    rng = draft.rng
    element = element_type(draft)
    shape = rng.randrange(5)
    if shape == 0:
        text = f"{GUARD} if (i < n) p[i] = q[i] * ({element}){rng.randint(2, 9)};"
    elif shape == 1:
        text = "p[threadIdx.x] = q[threadIdx.x];"
    elif shape == 2:
        text = f"{GUARD} {element} s = 0; for (int j = 0; j < n; j++) s += q[j * i]; p[i] = s;"
    else:
        statements = [_statement(draft, 2, "s", "p") for _ in range(rng.randint(1, 5))]
        early = "if (i >= n) return;" if rng.random() < 0.5 else ""
        text = f"{GUARD} {early} {element} s = q[i];\n" + "\n".join(statements) + "\np[i] = s;"
    draft.kernel(module, f"{element} *p, const {element} *q, int n", text)


def shared_reduction(draft: Draft) -> None:
    """Add a block reduction in shared memory."""
    size = draft.rng.choice((64, 128, 256))
    draft.kernel(
        draft.module(),
        "float *o, const float *a, int n",
        f"__shared__ float buffer[{size}]; {GUARD}\n"
        "buffer[threadIdx.x] = i < n ? a[i] : 0.0f; __syncthreads();\n"
        f"for (int d = {size // 2}; d > 0; d >>= 1) {{ if (threadIdx.x < d)"
        " buffer[threadIdx.x] += buffer[threadIdx.x + d]; __syncthreads(); }\n"
        "if (threadIdx.x == 0) o[blockIdx.x] = buffer[0];",
    )


def switch_table(draft: Draft) -> None:
    """Add a switch large enough for a jump table."""
    cases = "\n".join(
        f"case {i}: s += q[i + {draft.rng.randint(0, 9)}] * {draft.rng.randint(3, 99)};"
        f" q[{i}] = s; __syncwarp(); break;"
        for i in range(draft.rng.randint(6, 14))
    )
    text = f"{GUARD} int s = n;\nswitch (q[i]) {{\n{cases}\ndefault: s = 9; }}\np[i] = s;"
    draft.kernel(draft.module(), "int *p, volatile int *q, int n", text)


def integer_division(draft: Draft) -> None:
    """Add integer and float division and remainder, which call library code when 64 bits wide."""
    draft.kernel(
        draft.module(),
        "long long *p, float *q, int n",
        "p[0] = p[1] / p[2]; p[3] = p[4] % p[5]; q[0] = q[1] / q[2]; q[3] = sqrtf(q[4]);"
        " p[6] = (unsigned long long)p[7] / n;",
    )


def double_math(draft: Draft) -> None:
    """Add math functions and divisions that bring library code and literal pools."""
    rng = draft.rng
    functions = rng.sample(("sin", "cos", "exp", "log", "pow", "sqrt", "tan", "erf", "cbrt"), 2)
    module = draft.module()
    if rng.random() < 0.5:
        name = draft.name("math")
        module.body.append(
            f"__device__ __noinline__ double {name}(double x)"
            f" {{ return {functions[0]}({'x, x' if functions[0] == 'pow' else 'x'}) / (x + 3); }}"
        )
        draft.functions.append(
            Function(name, module.index, "__device__ double {}(double x)", "(int){f}({x} * 0.5)")
        )
        text = f"p[0] = {name}(p[1]) + {name}(p[2]);"
    else:
        calls = [f"{f}({'p[1], p[2]' if f == 'pow' else 'p[1]'})" for f in functions]
        text = f"p[0] = {calls[0]} / p[3]; p[4] = {calls[1]}; p[5] = 1.0 / p[6];"
    draft.kernel(module, "double *p", text)


def atomics_and_shuffles(draft: Draft) -> None:
    """Add atomics, votes and shuffles, with more than one barrier."""
    draft.kernel(
        draft.module(),
        "int *p, int n",
        f"{GUARD} int s = p[i];\n"
        "for (int d = 16; d; d >>= 1) s += __shfl_down_sync(~0u, s, d);\n"
        "if (__any_sync(~0u, s > n)) atomicAdd(p, s); atomicCAS(p + 1, s, n);\n"
        '__syncthreads(); asm volatile("bar.sync 3, 128;"); p[i + 5] = s;',
    )


def cooperative_groups(draft: Draft) -> None:
    """Add tiles and block groups of cooperative groups; grid groups reach the runtime."""
    module = draft.module()
    module.include("cooperative_groups.h")
    grid = "cooperative_groups::this_grid().sync();" if draft.rng.random() < 0.3 else ""
    draft.kernel(
        module,
        "int *p",
        "auto block = cooperative_groups::this_thread_block();\n"
        "auto tile = cooperative_groups::tiled_partition<16>(block);\n"
        f"int s = tile.shfl_down(p[0], 3); block.sync(); {grid} p[1] = s + tile.size();",
    )


def texture_object(draft: Draft) -> None:
    """Add bindless texture and surface access."""
    draft.kernel(
        draft.module(),
        "cudaTextureObject_t t, cudaSurfaceObject_t s, float *p",
        "p[0] = tex2D<float>(t, p[1], p[2]); surf1Dwrite(p[3], s, 8);",
    )


def big_parameters(draft: Draft) -> None:
    """Add a kernel whose parameter area is large, with a struct passed by value."""
    module = draft.module()
    name = draft.name("Params")
    module.body.append(f"struct {name} {{ int v[{draft.rng.choice((10, 100, 500))}]; double d; }};")
    draft.kernel(module, f"{name} a, int *p, int n", "p[0] = a.v[n] + a.v[1] + (int)a.d;")


def launch_bounds(draft: Draft) -> None:
    """Add a kernel with launch bounds that needs many registers, and calls if it can."""
    module = draft.module()
    callee = draft.callable(module)
    call = f"s0 += {callee.call.format(f=callee.name, x='k')};" if callee else ""
    count = draft.rng.choice((4, 20, 40))
    loads = "".join(f"float s{i} = p[i * n + {i}]; " for i in range(count))
    total = " + ".join(f"s{i} * p[{i}]" for i in range(count))
    draft.kernel(
        module,
        "float *p, int n",
        f"{GUARD} int k = n; {loads} __syncthreads(); {call} p[i] = {total};",
        f"__launch_bounds__({draft.rng.choice((128, 256, 1024))}) ",
    )


def printf_assert_malloc(draft: Draft) -> None:
    """Add calls of runtime functions that the driver provides."""
    module = draft.module()
    text = []
    if draft.rng.random() < 0.7:
        module.include("cstdio")
        text.append('printf("value %d of %d\\n", p[0], n);')
    if draft.rng.random() < 0.5:
        module.include("cassert")
        text.append("assert(p[1] > 0);")
    if draft.rng.random() < 0.5 or not text:
        text.append("int *h = (int *)malloc(n * 4); if (h) { h[0] = n; p[2] = h[0]; free(h); }")
    draft.kernel(module, "int *p, int n", "\n".join(text))
