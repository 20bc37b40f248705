// Compiled with -G: a leaf kernel, a function, and a static shared variable with a name.
__device__ int total;
__device__ int traced(int x)
{
    int y = x * 3;
    return y + total;
}
__global__ void checked(int *p)
{
    __shared__ int seen;
    if (threadIdx.x == 0)
        seen = p[0];
    __syncthreads();
    p[threadIdx.x] = seen;
}
