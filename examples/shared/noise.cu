#include "terrain.cuh"

static __device__ float roughness = 1.0f;

static __device__ unsigned mix(unsigned value)
{
    value ^= value >> 16;
    value *= 0x7feb352du;
    value ^= value >> 15;
    return value * 0x846ca68bu;
}

__device__ float noise(int x, int y)
{
    const unsigned bits = mix(x * 0x9e3779b9u + mix(y));
    return roughness * static_cast<float>(bits >> 24) / 256.0f;
}

void set_roughness(float value)
{
    cudaMemcpyToSymbol(roughness, &value, sizeof value);
}
