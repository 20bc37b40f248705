#include "particle.h"

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
