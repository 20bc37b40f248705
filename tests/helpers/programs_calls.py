"""Program features about calls: between modules, recursion, pointers, virtual, templates."""

from __future__ import annotations

from helpers.programs_common import GUARD, INT_CALL, array_size
from helpers.programs_draft import Draft, Function, ModuleDraft

SIGNATURES = (
    (INT_CALL, "{f}({x})"),
    ("__device__ float {}(float a, int x)", "(int){f}(1.5f * {x}, {x})"),
    ("__device__ double {}(double x)", "(int){f}((double){x})"),
    ("__device__ long long {}(long long x, int y)", "(int){f}((long long){x}, 3)"),
    ("__device__ int {}(const int *p, int x)", "{f}(&{x}, 2)"),
    ("__device__ unsigned char {}(unsigned char x)", "{f}((unsigned char){x})"),
)


def device_function(draft: Draft, module: ModuleDraft | None = None) -> None:
    """Add a noinline device function, which may call earlier ones, and a kernel that calls it."""
    module = module or draft.module()
    rng = draft.rng
    signature, call = rng.choice(SIGNATURES) if rng.random() < 0.5 else SIGNATURES[0]
    callee = draft.callable(module)
    name = draft.name("f")
    text = "int i = 3; int n = 5; int s = (int)x;"
    if callee and rng.random() < 0.7:
        text += f"\ns += {callee.call.format(f=callee.name, x='s')};"
    if rng.random() < 0.5:
        text += f"\nfor (int j = 0; j < s; j++) s ^= j * {rng.randint(3, 99)} + n * i;"
    module.body.append(f"__noinline__ {signature.format(name)} {{ {text}\nreturn s; }}")
    draft.functions.append(Function(name, module.index, signature, call))
    calling_kernel(draft)


def calling_kernel(draft: Draft) -> None:
    """Add a kernel that calls functions of its own and other modules."""
    module = draft.module()
    if not draft.functions:
        device_function(draft)
        return
    lines = [GUARD, "int s = p[i];"]
    for _ in range(draft.rng.randint(1, 3)):
        callee = draft.callable(module)
        assert callee is not None
        use = f"s += {callee.call.format(f=callee.name, x='s')};"
        lines.append(use if draft.rng.random() < 0.6 else f"if (i < n) {{ {use} }}")
    draft.kernel(module, "int *p, int n", "\n".join([*lines, "p[i] = s;"]))


def unused_code(draft: Draft) -> None:
    """Add device functions no kernel reaches, a chain of them, and an unused variable."""
    module = draft.module()
    first, second = draft.name("dead"), draft.name("dead")
    module.body.append(
        f"__device__ __noinline__ int {first}(int x) {{ return x * 77; }}\n"
        f"__device__ __noinline__ int {second}(int x) {{ return {first}(x) + {first}(x + 1); }}\n"
        f"__device__ int {draft.name('unused')}[{array_size(draft)}];"
    )


def same_named_statics(draft: Draft) -> None:
    """Add static functions and variables of one name in several modules."""
    name = draft.name("same")
    for module in draft.modules[: draft.rng.randint(1, 4)]:
        module.body.append(
            f"static __device__ int {name}_data[{draft.rng.randint(1, 9)}] = {{{module.index}}};\n"
            f"static __device__ __noinline__ int {name}(int x)"
            f" {{ return x * {draft.rng.randint(2, 99)} + {name}_data[0]++; }}"
        )
        draft.kernel(module, "int *p", f"p[threadIdx.x] = {name}(p[1]);")


def recursion(draft: Draft) -> None:
    """Add recursion of one function, or of two that live in different modules."""
    module, partner = draft.module(), draft.module()
    first = draft.name("rec")
    if module is partner or draft.rng.random() < 0.5:
        module.body.append(
            f"__device__ __noinline__ int {first}(int x)"
            f" {{ return x < 2 ? x : {first}(x - 1) + {first}(x - 2); }}"
        )
    else:
        second = draft.name("rec")
        module.declare(f"extern __device__ int {second}(int x);")
        partner.declare(f"extern __device__ int {first}(int x);")
        module.body.append(
            f"__device__ int {first}(int x) {{ return x ? {second}(x - 1) + 1 : 0; }}"
        )
        partner.body.append(
            f"__device__ int {second}(int x) {{ return x ? {first}(x - 1) * 3 : 1; }}"
        )
    draft.functions.append(Function(first, module.index, INT_CALL, "{f}({x})"))
    draft.kernel(module, "int *p", f"p[threadIdx.x] = {first}(p[0]);")


def function_table(draft: Draft) -> None:
    """Add a table of function pointers, called by index; some entries come from other modules."""
    module = draft.module()
    names = []
    for _ in range(draft.rng.randint(2, 4)):
        name = draft.name("t")
        module.body.append(
            f"__device__ int {name}(int x) {{ return x + {draft.rng.randint(1, 99)}; }}"
        )
        names.append(name)
    other = draft.module()
    if other is not module:
        name = draft.name("t")
        other.body.append(f"__device__ int {name}(int x) {{ return x ^ 5; }}")
        module.declare(f"extern __device__ int {name}(int x);")
        names.append(name)
    table = draft.name("table")
    space = draft.rng.choice(("__device__", "__constant__", "static __device__"))
    entries = ", ".join(names)
    module.body.append(f"{space} int (*{table}[{len(names)}])(int) = {{{entries}}};")
    draft.kernel(module, "int *p", f"p[threadIdx.x] = {table}[p[1] % {len(names)}](p[2]);")


def templates(draft: Draft) -> None:
    """Add a template instance in several modules, with equal or different bodies."""
    name = draft.name("tf")
    same = draft.rng.random() < 0.5
    for module in draft.modules[: draft.rng.randint(1, 4)]:
        factor = 3 if same else draft.rng.randint(3, 99)
        extra = "" if same or draft.rng.random() < 0.5 else "x += __popc(x) * __clz(x);"
        module.body.append(
            f"template <typename T, int N> __device__ __noinline__ T {name}(T x)"
            f" {{ {extra} return x * (T)N + (T){factor}; }}"
        )
        draft.kernel(
            module,
            "int *p, float *q",
            f"p[0] = {name}<int, 4>(p[1]); q[0] = {name}<float, {module.index + 2}>(q[1]);",
        )


def virtual_functions(draft: Draft) -> None:
    """Add a class hierarchy shared by modules: weak virtual tables and indirect calls."""
    base = draft.name("Base")
    header = (
        f"struct {base} {{ int tag; __device__ virtual int value(int x) {{ return x + tag; }}\n"
        f"  __device__ virtual int other(int x) {{ return x * tag; }} }};"
    )
    for module in draft.modules[: draft.rng.randint(1, 3)]:
        derived = draft.name("Derived")
        module.body.append(
            f"{header}\nstruct {derived} : {base} {{\n"
            f"  __device__ int value(int x) override {{ return x - {draft.rng.randint(1, 99)}; }}"
            " };"
        )
        draft.kernel(
            module,
            "int *p",
            f"{base} b; {derived} d; b.tag = p[3]; d.tag = p[4];\n"
            f"{base} *o = p[0] ? &b : (p[1] ? (&b + p[5]) : &d); p[2] = o->value(p[2])"
            " + o->other(1);",
        )


def many_registers(draft: Draft) -> None:
    """Add a device function that needs more registers than its callers."""
    module = draft.module()
    name = draft.name("big")
    count = draft.rng.choice((40, 80, 150))
    loads = "".join(f"float s{i} = v[{i}]; " for i in range(count))
    stores = "".join(f"v[{i}] = s{i} * s{(i * 7) % count}; " for i in range(count))
    pointer = draft.name("space")
    module.body.append(
        f"__device__ volatile float {pointer}[{count}];\n"
        f"__device__ __noinline__ int {name}(int x) {{ volatile float *v = {pointer} + x;"
        f" {loads} {stores} return v[0]; }}"
    )
    draft.functions.append(Function(name, module.index, INT_CALL, "{f}({x})"))
    calling_kernel(draft)


def local_arrays(draft: Draft) -> None:
    """Add stack arrays in a kernel and in a device function."""
    module = draft.module()
    name = draft.name("stack")
    size = draft.rng.choice((5, 16, 100))
    module.body.append(
        f"__device__ __noinline__ int {name}(int x) {{ int a[{size}];"
        f" for (int i = 0; i < {size}; i++) a[i] = x * i; return a[x % {size}]; }}"
    )
    draft.functions.append(Function(name, module.index, INT_CALL, "{f}({x})"))
    draft.kernel(
        module,
        "int *p, int n",
        f"int a[{size}]; for (int i = 0; i < {size}; i++) a[i] = p[i];"
        f" p[0] = a[n % {size}] + {name}(n);",
    )


def anonymous_namespace(draft: Draft) -> None:
    """Add functions, kernels and variables of an anonymous namespace."""
    module = draft.module()
    name = draft.name("an")
    module.body.append(
        f"namespace {{\n__device__ int {name}_data[3] = {{1, 2, 3}};\n"
        f"__device__ __noinline__ int {name}(int x) {{ return x + {name}_data[x % 3]; }}\n"
        f"__global__ void {name}_k(int *p) {{ p[0] = {name}(p[1]); }}\n}}\n"
        f"void *{name}_keep = (void *){name}_k;"
    )


def function_pointer_parameter(draft: Draft) -> None:
    """Add functions passed by pointer to a noinline function that calls them."""
    module = draft.module()
    apply, first, second = draft.name("apply"), draft.name("fp"), draft.name("fp")
    module.body.append(
        f"__device__ __noinline__ float {first}(float x) {{ return x * 2; }}\n"
        f"__device__ __noinline__ float {second}(float x) {{ return x * x; }}\n"
        f"__device__ __noinline__ float {apply}(float (*f)(float), float x)"
        " { return f(x) + f(x + 1); }"
    )
    draft.kernel(module, "float *p, int n", f"p[0] = {apply}(n ? &{first} : &{second}, p[1]);")
