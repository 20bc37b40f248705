"""Rarer program features: weak data and kernels, clusters, asynchronous copies, deep stacks."""

from __future__ import annotations

from helpers.programs_common import GUARD, INT_CALL, array_size
from helpers.programs_draft import Draft, Function


def template_kernels(draft: Draft) -> None:
    """Add instances of a kernel template with shared memory, the same ones in several modules."""
    rng = draft.rng
    name = draft.name("tk")
    size = array_size(draft)
    for module in draft.modules[: rng.randint(1, 4)]:
        room = size if rng.random() < 0.95 else array_size(draft)
        module.body.append(
            f"template <int N> __global__ void {name}(int *p, int n) {{\n"
            f"  __shared__ int b[{room}]; {GUARD} "
            f"if (i < n) b[i % {room}] = p[i]; __syncthreads();\n"
            f"  p[i] += b[0] * N; }}\n"
            f"template __global__ void {name}<3>(int *, int);"
        )
        draft.kernels.append(name)


def arrays_of_weak_kernels(draft: Draft) -> None:
    """Add extern arrays in instances of a kernel template, between other kernels."""
    rng = draft.rng
    name = draft.name("wk")
    for module in draft.modules[: rng.randint(1, 3)]:
        array = f"{name}_dyn"
        module.body.append(
            f"extern __shared__ int {array}[];\n"
            f"template <int N> __global__ void {name}(int *p, int n) {{\n"
            f"  {array}[threadIdx.x * N] = p[0]; __syncthreads(); p[1] = {array}[n + N]; }}"
        )
        for instance in rng.sample(range(1, 6), rng.randint(1, 3)):
            draft.kernel(module, "int *p, int n", f"{array}[n] = p[n]; p[1] = {array}[{instance}];")
            module.body.append(f"template __global__ void {name}<{instance}>(int *, int);")
        draft.kernel(module, "int *p, int **q", f"q[0] = {array} + p[0];")


def inline_variables(draft: Draft) -> None:
    """Add inline variables, static variables of inline functions, and variable templates."""
    rng = draft.rng
    name = draft.name("iv")
    size = array_size(draft)
    for module in draft.modules[: rng.randint(1, 4)]:
        first = rng.randint(1, 9)
        module.body.append(
            f"inline __device__ int {name}[3] = {{{first}, 2}};\n"
            f"template <int N> __device__ int {name}_t = N;\n"
            f"inline __device__ __noinline__ int {name}_f(int x)"
            f" {{ static __device__ int count = {first}; static __device__ int calls[{size}];"
            f" calls[0]++; return x + count++; }}"
        )
        text = f"p[0] = {name}[1] + {name}_t<5> + {name}_f(p[1]);"
        draft.kernel(module, "int *p", text)


def cluster_kernel(draft: Draft) -> None:
    """Add thread block clusters, from sm_90 on."""
    bounds = draft.rng.choice(("__cluster_dims__(2, 1, 1) ", ""))
    draft.kernel(
        draft.module(),
        "int *p, int n",
        f"__shared__ int b[{array_size(draft)}]; {GUARD} b[0] = n;\n"
        "#if __CUDA_ARCH__ >= 900\n"
        'asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;");\n'
        'int r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); p[1] = r;\n'
        "#endif\n"
        "p[i] = b[0];",
        f"\n#if __CUDA_ARCH__ >= 900\n{bounds}\n#endif\n" if bounds else "",
    )


def asynchronous_copy(draft: Draft) -> None:
    """Add cp.async and a shared barrier object, from sm_80 on."""
    draft.kernel(
        draft.module(),
        "float4 *p, int n",
        f"__shared__ float4 b[128]; __shared__ unsigned long long bar; {GUARD}\n"
        "#if __CUDA_ARCH__ >= 800\n"
        "unsigned s = (unsigned)__cvta_generic_to_shared(&b[threadIdx.x]);\n"
        "unsigned m = (unsigned)__cvta_generic_to_shared(&bar);\n"
        'asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(m));\n'
        'asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(s), "l"(p + i));\n'
        'asm volatile("cp.async.wait_all;");\n'
        "#endif\n"
        "__syncthreads(); p[n] = b[(threadIdx.x + 1) % 128]; p[n + 1].x = (float)bar;",
    )


def grid_constant(draft: Draft) -> None:
    """Add a __grid_constant__ parameter whose address is taken."""
    module = draft.module()
    name = draft.name("Grid")
    module.body.append(f"struct {name} {{ int v[{draft.rng.choice((4, 40))}]; }};")
    draft.kernel(
        module,
        f"const __grid_constant__ {name} a, int *p, int n",
        "const int *q = a.v; p[0] = q[n]; p[1] = *(q + p[2]);",
    )


def call_chain(draft: Draft) -> None:
    """Add a chain of functions over the modules, each with its own stack frame."""
    rng = draft.rng
    before = ""
    for _ in range(rng.randint(2, 7)):
        module = draft.module()
        name, size = draft.name("chain"), rng.choice((2, 9, 33))
        call = f"{before}(x + 1)" if before else "x"
        if before:
            module.declare(f"extern __device__ int {before}(int x);")
        module.body.append(
            f"__device__ __noinline__ int {name}(int x) {{ int a[{size}];\n"
            f"  for (int i = 0; i < {size}; i++) a[i] = x - i; int r = {call};\n"
            f"  return r + a[r % {size}]; }}"
        )
        before = name
        draft.functions.append(Function(name, module.index, INT_CALL, "{f}({x})"))
    module = draft.module()
    module.declare(f"extern __device__ int {before}(int x);")
    draft.kernel(module, "int *p", f"p[0] = {before}(p[1]);")


def recursion_through_pointer(draft: Draft) -> None:
    """Add functions that call each other through a table that names them all."""
    module = draft.module()
    first, second, table = draft.name("rp"), draft.name("rp"), draft.name("rt")
    module.body.append(
        f"extern __device__ int (*const {table}[2])(int);\n"
        f"__device__ int {first}(int x) {{ return x ? {table}[x & 1](x - 1) : 7; }}\n"
        f"__device__ int {second}(int x) {{ return x ? {table}[x & 1](x / 2) + 1 : 9; }}\n"
        f"__device__ int (*const {table}[2])(int) = {{{first}, {second}}};"
    )
    draft.kernel(module, "int *p", f"p[0] = {table}[p[1] & 1](p[2]);")


def lookup_tables(draft: Draft) -> None:
    """Add static constant tables inside functions, and string literals."""
    module = draft.module()
    name = draft.name("lut")
    values = ", ".join(str(draft.rng.randint(1, 999)) for _ in range(draft.rng.choice((8, 40))))
    module.body.append(
        f"__device__ __noinline__ int {name}(int x) {{ static const int t[] = {{{values}}};\n"
        f"  const int u[] = {{{values}}}; return t[x] + u[x + 1]; }}\n"
        f'__device__ const char *{name}_text = "text of {name}";'
    )
    draft.functions.append(Function(name, module.index, INT_CALL, "{f}({x})"))
    draft.kernel(module, "int *p", f"p[0] = {name}(p[1]) + {name}_text[p[2]];")


def static_kernels(draft: Draft) -> None:
    """Add static kernels of one name in several modules, and extern "C" names."""
    name = draft.name("sk")
    for module in draft.modules[: draft.rng.randint(1, 3)]:
        module.body.append(
            f"static __global__ void {name}(int *p) {{ p[0] = {module.index}; }}\n"
            f"void *{name}_{module.index} = (void *){name};\n"
            f'extern "C" __global__ void {name}_c{module.index}(float *p) {{ p[0] *= 3.0f; }}'
        )
        draft.kernels.append(f"{name}_c{module.index}")


def trap_and_clock(draft: Draft) -> None:
    """Add instructions with side effects on the schedule: trap, clock, fences, nanosleep."""
    draft.kernel(
        draft.module(),
        "long long *p, int n",
        f"{GUARD} long long t = clock64(); if (n < 0) __trap(); __threadfence_system();\n"
        '__nanosleep(20); p[i] = clock64() - t; if (n == 77) asm volatile("exit;"); p[i + 1] = 5;',
    )


def tensor_instruction(draft: Draft) -> None:
    """Add a matrix multiply-accumulate, from sm_80 on."""
    draft.kernel(
        draft.module(),
        "float *c, const unsigned *a",
        "float d0 = c[0], d1 = c[1], d2 = c[2], d3 = c[3];\n"
        "#if __CUDA_ARCH__ >= 800\n"
        'asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},'
        ' {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)'
        ' : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]));\n'
        "#endif\n"
        "c[threadIdx.x] = d0 + d1 + d2 + d3;",
    )


def many_kernels(draft: Draft) -> None:
    """Add so many kernels that the file has more than 255 sections."""
    module = draft.module()
    name = draft.name("mk")
    count = draft.rng.choice((30, 90))
    module.body += [
        f"__global__ void {name}_{i}(int *p, int n) {{ {GUARD} if (i < n) p[i] += {i}; }}"
        for i in range(count)
    ]
    draft.kernels.append(f"{name}_1")


def dynamic_parallelism(draft: Draft) -> None:
    """Add a kernel that launches another: needs the device runtime library."""
    child = draft.kernel(draft.module(), "int *p", "p[threadIdx.x] = 1;")
    module = draft.module()
    module.declare(f"extern __global__ void {child}(int *p);")
    draft.kernel(module, "int *p, int n", f"if (n) {child}<<<1, n>>>(p);")
    draft.device_runtime = True
