// What releases of nvlink treat in their own ways: arrays, shared variables, weak functions, calls.
extern __shared__ int dynamic[];
extern __device__ int exchange(int x);

template <class T>
__device__ __noinline__ T twice(T value) { return value + value; }

__global__ void plain(int *p) { p[0] = twice(p[1]); }
__global__ void with_array(int *p)
{
    __shared__ short own[9];
    own[threadIdx.x % 9] = 3;
    dynamic[threadIdx.x] = p[0];
    __syncthreads();
    p[1] = dynamic[p[2]] + own[p[3] % 9] + exchange(p[4]);
}
