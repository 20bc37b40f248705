#include "terrain.cuh"

__device__ float height(int x, int y)
{
    float sum = 0.0f;
    for (int octave = 0; octave < 4; ++octave)
        sum += noise(x >> octave, y >> octave) * static_cast<float>(1 << octave);
    return sum;
}

static __global__ void raise(float *heights, int width, int rows, float least)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y;
    if (x < width && y < rows && heights[y * width + x] < least)
        heights[y * width + x] = least + 0.125f * noise(x, -y);
}

void flatten(float *heights, int width, int rows, float least)
{
    raise<<<dim3((width + 127) / 128, rows), 128>>>(heights, width, rows, least);
}
