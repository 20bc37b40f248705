"""The program that benchmarks link many copies of: a group of ten modules, as CUDA sources.

The modules of each pair call one another. Every module has kernels. Those of 15KB to 50KB have a
constant, a table and a counter that they use; the large ones also share templates and have a static
function each. All names contain the group's name, so that any number of pairs and groups can be
linked. A link has 64 KiB for constants: at four bytes a module, 16,384 modules fit; modules of
TEMPLATES have sixteen bytes, tiny ones none.

The texts below have placeholders. GROUP stands for the name of the group, NUMBER for that of the
module, and PARTNER for the other module of its pair. TABLE stands for the values of its table, and
KERNEL for the number of a kernel.
"""

from __future__ import annotations

MODULES = 10  # in a group
GROUP = "g00000"  # the name of the compiled group: those of all copies have the same length

# A module with little more than names, and nothing in the constant bank.
TINY = """\
__device__ float force_GROUP_mPARTNER(float a);
__device__ float force_GROUP_mNUMBER(float a)
{
    return a * NUMBER.5f;
}
__global__ void field_GROUP_mNUMBER(float *field)
{
    field[threadIdx.x] = force_GROUP_mPARTNER(field[threadIdx.x]);
}
"""

HEADER = """\
struct Body {
    float x, y, z, mass;
};
__device__ float force_GROUP_mPARTNER(const Body &a, const Body &b);
__constant__ float scale_GROUP_mNUMBER = 1.NUMBERf;
__device__ float table_GROUP_mNUMBER[32] = { TABLE };
__device__ unsigned long long calls_GROUP_mNUMBER;
"""

SMALL = """\
__device__ float force_GROUP_mNUMBER(const Body &a, const Body &b)
{
    float dx = a.x - b.x, dy = a.y - b.y;
    atomicAdd(&calls_GROUP_mNUMBER, 1ull);
    float r2 = dx * dx + dy * dy + table_GROUP_mNUMBER[threadIdx.x % 32];
    return a.mass * b.mass * rsqrtf(r2) * scale_GROUP_mNUMBER;
}
__global__ void field_GROUP_mNUMBER(const Body *bodies, float *field)
{
    field[threadIdx.x] = force_GROUP_mPARTNER(bodies[threadIdx.x], bodies[blockIdx.x]);
}
"""

LARGE = """\
__device__ int order_GROUP_mNUMBER[4] = { NUMBER, 1, 2, 3 };
template <int N> __device__ __noinline__ float mix_GROUP(float a, float b)
{
    #pragma unroll 1
    for (int i = 0; i < N; ++i)
        a = a * b + N;
    return a;
}
static __device__ __noinline__ float shape(float r)
{
    float sum = 0.0f;
    #pragma unroll 1
    for (int i = 0; i < 32; ++i)
        sum = sum * r + table_GROUP_mNUMBER[i] * scale_GROUP_mNUMBER;
    return sum;
}
__device__ float force_GROUP_mNUMBER(const Body &a, const Body &b)
{
    float dx = a.x - b.x, dy = a.y - b.y, dz = a.z - b.z;
    float r2 = dx * dx + dy * dy + dz * dz + 1e-6f;
    atomicAdd(&calls_GROUP_mNUMBER, 1ull);
    return a.mass * b.mass * shape(rsqrtf(r2)) + mix_GROUP<NUMBER % 3 + 1>(r2, dx);
}
"""

KERNEL = """\
__global__ void field_GROUP_mNUMBER_kKERNEL(const Body *bodies, float *field, int count)
{
    __shared__ float partial[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float energy = KERNEL.0f;
    #pragma unroll 1
    for (int j = 0; j < count; ++j)
        energy += force_GROUP_mPARTNER(bodies[i], bodies[j]) + bodies[j].x * KERNEL.5f;
    partial[threadIdx.x] = energy;
    __syncthreads();
    #pragma unroll 1
    for (int step = 128; step; step /= 2) {
        if (threadIdx.x < step)
            partial[threadIdx.x] += partial[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        field[blockIdx.x] = partial[0] + order_GROUP_mNUMBER[KERNEL % 4];
}
"""

# Two instances of a kernel, each with an array in shared memory, and another kernel.
TEMPLATES = """\
extern __device__ float force_GROUP_mPARTNER(float x, int n);
extern __device__ int offset_GROUP_mPARTNER;
__device__ int offset_GROUP_mNUMBER = NUMBER;
__constant__ float scale_GROUP_mNUMBER[4] = { 1.0f, 2.0f, 3.0f, NUMBER.0f };
__device__ __noinline__ float force_GROUP_mNUMBER(float x, int n)
{
    float sum = x;
    for (int i = 0; i < n; ++i)
        sum = sum * scale_GROUP_mNUMBER[i & 3] + __sinf(sum);
    return sum + offset_GROUP_mNUMBER;
}
template <typename T> __global__ void add_GROUP_mNUMBER(T *out, const T *in, int n)
{
    __shared__ T tile[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? in[i] : T(0);
    __syncthreads();
    T sum = 0;
    for (int k = 0; k < 128; ++k)
        sum += tile[k];
    if (i < n)
        out[i] = sum + T(force_GROUP_mPARTNER(float(i), n)) + T(offset_GROUP_mPARTNER);
}
template __global__ void add_GROUP_mNUMBER<float>(float *, const float *, int);
template __global__ void add_GROUP_mNUMBER<double>(double *, const double *, int);
__global__ void field_GROUP_mNUMBER(float *field, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        field[i] = force_GROUP_mNUMBER(field[i], n) + force_GROUP_mPARTNER(field[i], 2);
}
"""


def with_kernels(count: int) -> str:
    """Return the text of a large module with this many kernels."""
    kernels = (KERNEL.replace("KERNEL", str(number)) for number in range(count))
    return HEADER + LARGE + "".join(kernels)


# The text of a module, mostly by the approximate size of its cubin for sm_100, with line tables.
# Cubins for sm_90a are a quarter smaller.
BODIES = {
    "TINY": TINY,
    "TEMPLATES": TEMPLATES,
    "15KB": HEADER + SMALL,
    "30KB": with_kernels(2),
    "50KB": with_kernels(4),
}


def text_of(body: str, number: int) -> str:
    """Return the CUDA source of module `number` of the group GROUP, from a value of BODIES."""
    table = ", ".join(f"{(i * 37 + number * 11) % 101 / 101:.4f}f" for i in range(32))
    text = body.replace("TABLE", table).replace("GROUP", GROUP)
    return text.replace("PARTNER", str(number ^ 1)).replace("NUMBER", str(number))


def sources(size: str) -> dict[str, str]:
    """Return, by file name, the CUDA source of each module of the group GROUP."""
    return {f"{GROUP}_m{number}.cu": text_of(BODIES[size], number) for number in range(MODULES)}
