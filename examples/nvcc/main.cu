#include <cstdio>

__device__ int square(int value);

__global__ void squares(int *values)
{
    values[threadIdx.x] = square(threadIdx.x);
}

int main()
{
    int *values = nullptr;
    int host[8] = {};
    cudaMalloc(&values, sizeof host);
    squares<<<1, 8>>>(values);
    cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost);
    const cudaError_t status = cudaGetLastError();
    std::printf("%s: %d %d %d\n", cudaGetErrorString(status), host[1], host[2], host[3]);
    return status == cudaSuccess ? 0 : 1;
}
