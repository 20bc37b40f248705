"""Programs for tests of PTX and LTO inputs, and the compiler runs that make such inputs."""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
from pathlib import Path

from helpers import oracle

# One file's kernel calls the other's function, which reads the first one's variable.
CALLER = """
__device__ int helper(int x);
__device__ int gvar = 7;
__global__ void k1(int *p) { p[threadIdx.x] = helper(p[0]) + gvar; }
__global__ void k2(float *p) {
    __shared__ float s[128];
    s[threadIdx.x] = p[threadIdx.x];
    __syncthreads();
    p[threadIdx.x] = s[127 - threadIdx.x] * sinf(p[1]);
}
"""
CALLED = """
extern __device__ int gvar;
__device__ __noinline__ int helper(int x) { return x * 3 + gvar; }
"""
# Functions that only other files call, a dead one, and one with a stack frame.
LIBRARY = """
__device__ int dead_var = 3;
__device__ int used_var = 4;
static __device__ int own = 1;
__device__ __noinline__ int dead(int x) { return x * 3 + dead_var; }
__device__ __noinline__ int called(int x) { return x * 7 + used_var; }
__device__ __noinline__ int wanted(int x) { return x * 9; }
__device__ __noinline__ int framed(int *p) {
    volatile char b[64];
    for (int i = 0; i < 64; i++) b[i] = p[i];
    return b[p[0] & 63];
}
__global__ void k3(int *p) { p[threadIdx.x] = called(p[0]) + own; }
__global__ void k4(int *p) { p[1] = framed(p); }
"""
USER = """
extern __device__ int wanted(int x);
__global__ void k5(int *p) { p[threadIdx.x] = wanted(p[0]); }
"""
ALONE = "__global__ void k6(int *p) { p[threadIdx.x] = 5; }\n"

# Every function of it is called by USER.
WANTED = """
__device__ int factor = 4;
static __device__ int own = 1;
__device__ __noinline__ int wanted(int x) { return x * 9 + factor; }
__global__ void k7(int *p) { p[threadIdx.x] = wanted(p[0]) + own; }
"""

LAUNCHER = """
__global__ void child(int *p) { p[threadIdx.x] = 1; }
__global__ void parent(int *p) { child<<<1, 32>>>(p); }
"""

# A source whose code depends on the number of registers.
ANGLES = """
__global__ void k9(double *p) { p[threadIdx.x] += sin(p[0]); }
"""

# Sources that define one name in different ways; each has a kernel that uses it.
TWICE = {
    "strong": """
extern "C" __device__ __noinline__ int twice(int x) { return x * 3; }
__global__ void of_strong(int *p) { *p = twice(*p); }
""",
    "inlined": """
extern "C" __device__ int twice(int x) { return x * 5; }
__global__ void of_inlined(int *p) { *p = twice(*p); }
""",
    "weak": """
extern "C" inline __device__ __noinline__ int twice(int x) { return x * 7; }
__global__ void of_weak(int *p) { *p = twice(*p); }
""",
    "weaker": """
extern "C" inline __device__ __noinline__ int twice(int x) { return x * x + x % 9; }
__global__ void of_weaker(int *p) { *p = twice(*p); }
""",
    "static": """
extern "C" static __device__ __noinline__ int twice(int x) { return x * 11; }
__global__ void of_static(int *p) { *p = twice(*p); }
""",
    "kernel": """
extern "C" __global__ void twice(int *p) { *p = 1; }
""",
    "variable": """
extern "C" { __device__ int twice = 4; }
__global__ void of_variable(int *p) { *p = twice++; }
""",
    "constant": """
extern "C" { __constant__ int twice = 4; }
__global__ void of_constant(int *p) { *p = twice; }
""",
    "user_of_twice": """
extern "C" __device__ int twice(int x);
__device__ int (*pointer)(int) = twice;
__device__ void nothing();
__global__ void of_user(int *p) { *p = twice(*p) + pointer(*p); nothing(); }
""",
    "nothing": """
__device__ __noinline__ void nothing() { __threadfence(); }
""",
}

SOURCES = {
    **TWICE,
    "caller": CALLER,
    "called": CALLED,
    "library": LIBRARY,
    "user": USER,
    "alone": ALONE,
    "launcher": LAUNCHER,
    "angles": ANGLES,
    "wanted": WANTED,
}

# LTO-IR for this arch can be linked for all newer ones.
LTO_ARCH = "80"


def write_ltoir(folder: Path, *names: str, flags: tuple[str, ...] = ()) -> None:
    """Compile sources to `name.ltoir` in `folder`."""
    for name in names:
        compiled = _compile(name, ("-dlto", "-ltoir", f"-arch=sm_{LTO_ARCH}", *flags))
        (folder / f"{name}.ltoir").write_bytes(compiled)


def write_host_object(folder: Path, name: str, code: str) -> str:
    """Compile a source to a host object with code such as sm_80 or lto_80; return its name."""
    compiled = _compile(name, ("-dc", "-gencode", f"arch={_virtual(code)},code={code}"))
    (folder / f"{name}.{code}.o").write_bytes(compiled)
    return f"{name}.{code}.o"


def write_fatbin(folder: Path, name: str, code: str, flags: tuple[str, ...] = ()) -> str:
    """Compile a source to a fat binary with code such as sm_80 or lto_80; return its name."""
    compiled = _compile(name, ("-fatbin", *flags, "-gencode", f"arch={_virtual(code)},code={code}"))
    output = f"{name}.{code}.{len(flags)}.fatbin"
    (folder / output).write_bytes(compiled)
    return output


def _virtual(code: str) -> str:
    """Return the virtual architecture for code such as sm_80 or lto_80."""
    kind, _, arch = code.partition("_")
    return "compute_" + (LTO_ARCH if kind == "lto" else arch)


@functools.cache
def _compile(name: str, flags: tuple[str, ...]) -> bytes:
    """Return the object of a source; its time is the same in every run, so the bytes are, too."""
    with tempfile.TemporaryDirectory(prefix="pylink-oracle-") as folder:
        source = Path(folder) / f"{name}.cu"
        source.write_text(SOURCES[name])
        os.utime(source, (oracle.SOURCE_TIME, oracle.SOURCE_TIME))
        argv = [oracle.toolchain().tool("nvcc"), "-rdc=true", *flags, source.name, "-o", "made"]
        subprocess.run(argv, cwd=folder, check=True, capture_output=True)
        return (Path(folder) / "made").read_bytes()


def write_nvvm(folder: Path) -> None:
    """Make `nvvm`, the directory for -nvvmpath, from the libraries of a wheel or toolkit."""
    root = oracle.toolchain().bin.parent
    libraries = [path for path in sorted(root.glob("**/libnvvm.so*")) if path.is_file()]
    if not libraries:
        raise oracle.OracleError("no libnvvm beside nvlink (pip install '.[oracle]')")
    (folder / "nvvm" / "lib64").mkdir(parents=True)
    (folder / "nvvm" / "lib64" / "libnvvm.so").symlink_to(libraries[0])
