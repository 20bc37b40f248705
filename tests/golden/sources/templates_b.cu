// See templates_a.cu.
template <typename T> __device__ __noinline__ T twice(T x) { return x * 2 + (x & 1); }
template <int N> __global__ void fill(int *p)
{
    __shared__ int b[N];
    b[threadIdx.x % N] = N;
    __syncthreads();
    p[threadIdx.x] = b[p[0] % N];
}
extern __device__ int (*steps[2])(int);
template __global__ void fill<4>(int *);
template __global__ void fill<9>(int *);
__global__ void use_twice(int *p) { p[0] = twice(p[1]) + steps[1](p[2]); }
