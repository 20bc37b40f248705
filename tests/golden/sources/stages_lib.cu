template <class T>
__device__ __noinline__ T twice(T value) { return value + value; }

__device__ int exchange(int x)
{
    __shared__ __align__(16) int box[4];
    box[threadIdx.x & 3] = x;
    __syncthreads();
    return box[(threadIdx.x + 1) & 3];
}
__global__ void through(int *p, int (*f)(int)) { p[0] = exchange(p[1]) + twice(f(p[2])); }
