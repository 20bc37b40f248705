#include "particle.h"

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
