// One force, with a table in constant memory and a helper of its own. FORCE is its number.

#include "particle.h"

#define JOIN(name, number) name##_##number
#define EXPAND(name, number) JOIN(name, number)
#define NAMED(name) EXPAND(name, FORCE)
#define ENTRY(i) (((i) * 37 + FORCE * 11) % 101 / 101.0f)
#define FOUR(i) ENTRY(i), ENTRY((i) + 1), ENTRY((i) + 2), ENTRY((i) + 3)
#define SIXTEEN(i) FOUR(i), FOUR((i) + 4), FOUR((i) + 8), FOUR((i) + 12)

__constant__ float NAMED(table)[64] = { SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48) };

static __device__ __noinline__ float shape(float r)
{
    float sum = 0.0f;
    for (int i = 0; i < 64; ++i)
        sum = sum * r + NAMED(table)[i];
    return sum;
}

__device__ float3 NAMED(force)(const Particle &a, const Particle &b)
{
    float dx = a.x - b.x, dy = a.y - b.y, dz = a.z - b.z;
    float r2 = dx * dx + dy * dy + dz * dz + 1e-6f;
    float scale = a.mass * b.mass * shape(rsqrtf(r2)) * (FORCE + 1);
    return make_float3(dx * scale, dy * scale, dz * scale);
}

__global__ void NAMED(field)(const Particle *particles, float *field, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float energy = 0.0f;
    if (i < count)
        for (int j = 0; j < count; ++j) {
            float3 f = NAMED(force)(particles[i], particles[j]);
            energy += f.x * f.x + f.y * f.y + f.z * f.z;
        }
    energy = block_sum(energy);
    if (threadIdx.x == 0)
        field[blockIdx.x] = energy;
}
