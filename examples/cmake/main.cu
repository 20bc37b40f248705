#include <cstdio>
#include <vector>

#include "filters.cuh"

__global__ void filter(const float *in, float *out, int count)
{
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count)
        out[at] = scale(smooth(in, at, count));
}

int main()
{
    const int count = 1024;
    std::vector<float> samples(count);
    for (int i = 0; i < count; ++i)
        samples[i] = static_cast<float>(i % 7);
    const size_t size = count * sizeof(float);
    float *in = nullptr;
    float *out = nullptr;
    cudaMalloc(&in, size);
    cudaMalloc(&out, size);
    cudaMemcpy(in, samples.data(), size, cudaMemcpyHostToDevice);
    filter<<<(count + 255) / 256, 256>>>(in, out, count);
    cudaMemcpy(samples.data(), out, size, cudaMemcpyDeviceToHost);
    const cudaError_t status = cudaGetLastError();
    std::printf("%s: %g %g %g\n", cudaGetErrorString(status), samples[0], samples[1], samples[2]);
    return status == cudaSuccess ? 0 : 1;
}
