#include <cstdio>
#include <vector>

#include "terrain.cuh"

__global__ void build(float *heights, int width, int rows)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y;
    if (x < width && y < rows)
        heights[y * width + x] = height(x, y) + noise(x, y);
}

int main()
{
    const int width = 256;
    const int rows = 64;
    const size_t size = sizeof(float) * width * rows;
    float *heights = nullptr;
    cudaMalloc(&heights, size);
    set_roughness(2.0f);
    build<<<dim3((width + 127) / 128, rows), 128>>>(heights, width, rows);
    flatten(heights, width, rows, 4.0f);
    std::vector<float> result(width * rows);
    cudaMemcpy(result.data(), heights, size, cudaMemcpyDeviceToHost);
    const cudaError_t status = cudaDeviceSynchronize();
    double sum = 0;
    for (const float value : result)
        sum += value;
    std::printf("%s: %.6f %.6f %.6f\n", cudaGetErrorString(status), result[0], result[777], sum);
    cudaFree(heights);
    return status == cudaSuccess ? 0 : 1;
}
