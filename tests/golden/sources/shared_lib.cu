// A device function with a shared variable that several kernels reach.
__device__ int exchange(int x)
{
    __shared__ __align__(16) int box[4];
    box[threadIdx.x & 3] = x;
    __syncthreads();
    return box[(threadIdx.x + 1) & 3];
}
