// An optimised object for debug_full.cu, which is compiled with -G.
extern __device__ int traced(int x);
__global__ void plain(int *p, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] = traced(i);
}
__global__ void leaf(int *p, int n)
{
    if (threadIdx.x < n)
        p[threadIdx.x] = n;
}
