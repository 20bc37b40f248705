// Shared memory of kernels, of a device function, and dynamic.
extern __shared__ int dynamic[];
extern __device__ int exchange(int x);

__global__ void only_static(int *p)
{
    __shared__ int a[3];
    __shared__ __align__(32) char b[5];
    __shared__ double c;
    a[threadIdx.x % 3] = p[0];
    b[1] = 1;
    c = 2.5;
    __syncthreads();
    p[1] = a[p[2] % 3] + b[p[3] & 1] + (int)c;
}
__global__ void with_dynamic(int *p)
{
    __shared__ short own[9];
    own[threadIdx.x % 9] = 3;
    dynamic[threadIdx.x] = p[0];
    __syncthreads();
    p[1] = dynamic[p[2]] + own[p[3] % 9];
}
__global__ void through_function(int *p) { p[0] = exchange(p[1]); }
__global__ void through_function_and_own(int *p)
{
    __shared__ int own[40];
    own[threadIdx.x % 40] = p[2];
    __syncthreads();
    p[0] = exchange(own[p[3] % 40]);
}
