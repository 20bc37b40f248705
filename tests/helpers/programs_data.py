"""Program features about variables: global, constant, managed, shared, addresses in data."""

from __future__ import annotations

from helpers.programs_common import GUARD, INT_CALL, array_size, element_type
from helpers.programs_draft import Draft, Function, ModuleDraft


def _storage(draft: Draft, module: ModuleDraft, space: str, *, constant: bool) -> None:
    """Add a variable in a memory space, and kernels that use it."""
    rng = draft.rng
    element = element_type(draft)
    size = array_size(draft)
    align = f"__align__({rng.choice((16, 32, 64, 128))}) " if rng.random() < 0.3 else ""
    static = "static " if rng.random() < 0.35 else ""
    name = draft.name("c" if constant else "g")
    values = ", ".join(str(rng.randint(1, 99)) for _ in range(min(size, 6)))
    value = f" = {{{values}}}" if rng.random() < (0.7 if constant else 0.5) else ""
    module.body.append(f"{static}{space} {align}{element} {name}[{size}]{value};")
    if not static:
        draft.variables.append(name)
    users = [module]
    if not static and rng.random() < 0.5:
        users.append(draft.module())
    for user in users:
        if user is not module:
            user.declare(f"extern {space} {element} {name}[{size}];")
        index = rng.choice(("0", str(size - 1), f"i % {size}"))
        if not constant and rng.random() < 0.5:
            text = f"{GUARD} {name}[{index}] += p[i]; p[i] = {name}[0];"
        else:
            text = f"{GUARD} p[i] = {name}[{index}];"
        draft.kernel(user, f"{element} *p", text)


def global_variable(draft: Draft) -> None:
    """Add a __device__ variable, used by its own and perhaps another module."""
    _storage(draft, draft.module(), "__device__", constant=False)


def constant_variable(draft: Draft) -> None:
    """Add a __constant__ variable, used by its own and perhaps another module."""
    _storage(draft, draft.module(), "__constant__", constant=True)


def initialised_pointers(draft: Draft) -> None:
    """Add variables whose initial value is the address of another variable."""
    module = draft.module()
    target, pointer, pair = draft.name("target"), draft.name("pointer"), draft.name("pair")
    size = draft.rng.randint(4, 40)
    module.body.append(
        f"__device__ int {target}[{size}] = {{1, 2, 3}};\n"
        f"__device__ int *{pointer} = &{target}[{draft.rng.randrange(size)}];\n"
        f"struct {pair}_t {{ char tag; int *first; int **second; }};\n"
        f"__device__ {pair}_t {pair} = {{7, {target}, &{pointer}}};"
    )
    draft.kernel(module, "int *p", f"p[0] = *{pointer} + **{pair}.second + {pair}.first[1];")


def static_shared(draft: Draft) -> None:
    """Add shared variables of a kernel in random sizes and alignments."""
    rng = draft.rng
    lines = [GUARD]
    for _ in range(rng.choice((1, 1, 2, 3, 6, 9))):
        name, element, size = draft.name("s"), element_type(draft), array_size(draft)
        align = f"__align__({rng.choice((8, 16, 32, 128))}) " if rng.random() < 0.3 else ""
        lines += [
            f"__shared__ {align}{element} {name}[{size}];",
            f"{name}[threadIdx.x % {size}] = ({element})p[i]; __syncthreads();"
            f" p[i] += (int){name}[n % {size}];",
        ]
    draft.kernel(draft.module(), "int *p, int n", "\n".join(lines))


def device_function_shared(draft: Draft) -> None:
    """Add a device function with its own shared variable, reached from several kernels."""
    rng = draft.rng
    module = draft.module()
    name, element, size = draft.name("sf"), element_type(draft), array_size(draft)
    align = f"__align__({rng.choice((8, 16, 64))}) " if rng.random() < 0.4 else ""
    module.body.append(
        f"__device__ __noinline__ int {name}(int x)"
        f" {{ __shared__ {align}{element} b[{size}]; b[x % {size}] = x; __syncthreads();\n"
        f"  return (int)b[(x + 1) % {size}]; }}"
    )
    draft.functions.append(Function(name, module.index, INT_CALL, "{f}({x})"))
    for _ in range(rng.randint(1, 3)):
        user = draft.module()
        if user is not module:
            user.declare(f"extern __device__ int {name}(int x);")
        declaration = (
            f"__shared__ char own[{array_size(draft)}]; own[0] = p[1];"
            if rng.random() < 0.4
            else ""
        )
        draft.kernel(user, "int *p", f"{declaration} p[threadIdx.x] = {name}(p[0]);")


def extern_shared(draft: Draft) -> None:
    """Add dynamic shared memory, alone or beside static variables."""
    module = draft.module()
    name = draft.name("dyn")
    element = draft.rng.choice(("int", "float4", "double", "char"))
    module.body.append(f"extern __shared__ {element} {name}[];")
    for _ in range(draft.rng.randint(1, 2)):
        static = (
            f"__shared__ short own[{array_size(draft)}]; own[0] = n; p[3] = own[n & 1];"
            if draft.rng.random() < 0.5
            else ""
        )
        draft.kernel(
            module,
            "int *p, int n",
            f"{static} char *b = (char *){name}; b[threadIdx.x] = p[0]; __syncthreads();"
            " p[1] = b[n];",
        )


def file_scope_shared(draft: Draft) -> None:
    """Add shared variables at file scope, used by one or two kernels."""
    module = draft.module()
    names = [draft.name("fs") for _ in range(draft.rng.randint(1, 3))]
    for name in names:
        module.body.append(f"__shared__ {element_type(draft)} {name}[{array_size(draft)}];")
    for _ in range(draft.rng.randint(1, 2)):
        used = draft.rng.sample(names, draft.rng.randint(1, len(names)))
        lines = [f"{n}[0] = p[0]; __syncthreads(); p[1] += {n}[0];" for n in used]
        draft.kernel(module, "int *p", "\n".join(lines))


def managed_variable(draft: Draft) -> None:
    """Add a __managed__ variable, and another module that uses it."""
    module, other = draft.module(), draft.module()
    name = draft.name("mg")
    value = " = 5" if draft.rng.random() < 0.5 else ""
    module.body.append(f"__device__ __managed__ int {name}{value};")
    draft.kernel(module, "int *p", f"{name} += p[0];")
    if other is not module:
        other.declare(f"extern __device__ __managed__ int {name};")
        draft.kernel(other, "int *p", f"p[0] = {name};")


def const_and_shared_addresses(draft: Draft) -> None:
    """Add generic addresses of constant, shared and global variables kept in memory."""
    module = draft.module()
    first, second = draft.name("ca"), draft.name("ga")
    module.body.append(
        f"__constant__ int {first}[20] = {{1, 2, 3}};\n__device__ int {second}[7];\n"
        f"__device__ const int *{first}_p = {first} + 2;"
    )
    draft.kernel(
        module,
        "const int **p, int n",
        f"__shared__ int b[33]; b[n] = n; __syncthreads(); p[0] = n ? {first} + n : b;"
        f" p[1] = {second}; p[2] = {first}_p; p[3] = &b[b[n + 1]];",
    )
