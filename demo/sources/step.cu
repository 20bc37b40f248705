// The kernels.

#include "particle.h"

#define FORCES(each) each(0), each(1), each(2), each(3), each(4), each(5), each(6), each(7)
#define DECLARED(number) force_##number(const Particle &, const Particle &)
#define NAME(number) force_##number

__device__ float3 FORCES(DECLARED);

typedef float3 (*Force)(const Particle &, const Particle &);
__device__ Force forces[] = { FORCES(NAME) };

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
