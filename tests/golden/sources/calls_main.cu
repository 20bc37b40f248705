// Kernels that call into calls_lib.cu, and variables on both sides.
extern __device__ int add_bias(int x);
extern __device__ int fibonacci(int x);
extern __device__ int counters[3];
__constant__ short weights[5] = {1, 2, 3, 4, 5};
__device__ __align__(64) char tag[7] = "golden";
__device__ double unset[9];

__device__ __noinline__ static int helper(int x) { return x * weights[x & 3]; }
__device__ __noinline__ int dead(int x) { return helper(x) + 1; }

__global__ void use_bias(int *p) { p[threadIdx.x] = add_bias(p[0]) + helper(p[1]) + tag[p[2] & 3]; }
__global__ void use_recursion(int *p) { p[0] = fibonacci(p[1]) + counters[2]; }
__global__ void no_call(double *p) { unset[threadIdx.x & 7] += p[0]; }
