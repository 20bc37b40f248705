"""The program of the demo: modules that call each other, as CUDA sources.

A small particle simulation, split over modules as a large one would be: one for each force, with
tables in constant memory and helpers of its own, one for random numbers, one for the reduction in
shared memory, and one with the kernels. Functions cross modules, so nothing runs without a linker.
Two modules are the same templates, as when two libraries of a build both bring a third one's.
"""

from __future__ import annotations

FORCES = 8

HEADER = """\
struct Particle {
    float x, y, z, mass;
};
__device__ float uniform(unsigned &state);
__device__ float block_sum(float value);
"""

RANDOM = """\
__device__ unsigned long long draws;
__device__ unsigned next(unsigned &state)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}
__device__ float uniform(unsigned &state)
{
    atomicAdd(&draws, 1ull);
    return next(state) * 0x1p-32f;
}
"""

REDUCTION = """\
__device__ float block_sum(float value)
{
    __shared__ float partial[32];
    for (int step = 16; step; step /= 2)
        value += __shfl_down_sync(0xffffffffu, value, step);
    if (threadIdx.x % 32 == 0)
        partial[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0.0f;
    if (threadIdx.x < 32)
        for (int step = 16; step; step /= 2)
            value += __shfl_down_sync(0xffffffffu, value, step);
    return value;
}
"""

FORCE = """\
__constant__ float table_NUMBER[64] = { TABLE };
static __device__ __noinline__ float shape(float r)
{
    float sum = 0.0f;
    for (int i = 0; i < 64; ++i)
        sum = sum * r + table_NUMBER[i];
    return sum;
}
__device__ float3 force_NUMBER(const Particle &a, const Particle &b)
{
    float dx = a.x - b.x, dy = a.y - b.y, dz = a.z - b.z;
    float r2 = dx * dx + dy * dy + dz * dz + 1e-6f;
    float scale = a.mass * b.mass * shape(rsqrtf(r2)) * EXTRA;
    return make_float3(dx * scale, dy * scale, dz * scale);
}
__global__ void field_NUMBER(const Particle *particles, float *field, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float energy = 0.0f;
    if (i < count)
        for (int j = 0; j < count; ++j) {
            float3 f = force_NUMBER(particles[i], particles[j]);
            energy += f.x * f.x + f.y * f.y + f.z * f.z;
        }
    energy = block_sum(energy);
    if (threadIdx.x == 0)
        field[blockIdx.x] = energy;
}
"""

SMOOTHING = """\
template <int N> __device__ __noinline__ float blend(float value)
{
    float sum = value;
    for (int i = 0; i < N; ++i)
        sum = sum * value + i;
    return sum;
}
template <class T> __device__ __noinline__ T smooth(T a, T b)
{
    return a * b + blend<3>(a) * blend<5>(b);
}
template __device__ float blend<3>(float);
template __device__ float blend<5>(float);
template __device__ float smooth<float>(float, float);
"""

STEP = """\
DECLARATIONS
typedef float3 (*Force)(const Particle &, const Particle &);
__device__ Force forces[] = { NAMES };
__global__ void start(Particle *particles, int count, unsigned seed)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned state = seed * 2654435761u + i + 1;
    if (i < count)
        particles[i] = { uniform(state), uniform(state), uniform(state), 1.0f + uniform(state) };
}
__global__ void step(const Particle *now, Particle *next, int count, int kind, float time)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    float3 sum = make_float3(0.0f, 0.0f, 0.0f);
    for (int j = 0; j < count; ++j) {
        float3 f = forces[kind](now[i], now[j]);
        sum.x += f.x;
        sum.y += f.y;
        sum.z += f.z;
    }
    next[i] = { now[i].x + sum.x * time, now[i].y + sum.y * time, now[i].z + sum.z * time,
                now[i].mass };
}
"""


def sources() -> dict[str, str]:
    """Module name to CUDA source."""
    numbers = range(FORCES)
    modules = {"random": RANDOM, "reduction": REDUCTION}
    modules["smoothing_a"] = modules["smoothing_b"] = SMOOTHING
    for number in numbers:
        table = ", ".join(f"{(i * 37 + number * 11) % 101 / 101:.4f}f" for i in range(64))
        force = FORCE.replace("NUMBER", f"{number:02}").replace("TABLE", table)
        modules[f"force_{number:02}"] = force.replace("EXTRA", f"{number + 1}.0f")
    declarations = "\n".join(
        f"__device__ float3 force_{n:02}(const Particle &, const Particle &);" for n in numbers
    )
    names = ", ".join(f"force_{n:02}" for n in numbers)
    modules["step"] = STEP.replace("DECLARATIONS", declarations).replace("NAMES", names)
    return {name: HEADER + text for name, text in modules.items()}


def file_name(module: str) -> str:
    """The file a module is compiled from: two modules are from one."""
    return f"{module.removesuffix('_a').removesuffix('_b')}.cu"
