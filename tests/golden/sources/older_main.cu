// Barriers that are numbered and not, and a weak function in both files.
__device__ int shared_by_all[4] = {1, 2, 3, 4};
__constant__ int factors[4] = {2, 3, 5, 7};

extern __device__ int measured(int value, double scale);

template <class T>
__device__ __noinline__ T twice(T value) {
    return value + value + shared_by_all[0];
}

__device__ __noinline__ int through_barrier(int value) {
    __shared__ int row[33];
    row[value & 31] = value;
    asm volatile("bar.sync 3, 64;");
    return row[(value + 1) & 31] + factors[value & 3];
}

__global__ void main_kernel(int *values) {
    __shared__ int tile[64];
    tile[threadIdx.x] = values[threadIdx.x];
    __syncthreads();
    values[0] = through_barrier(tile[values[1] & 63]) + twice(values[3]) + measured(values[4], 0.5);
}

__global__ void any_barrier(int *values) {
    extern __shared__ int open[];
    open[values[0]] = values[1];
    asm volatile("bar.sync %0;" ::"r"(values[7]));
    values[2] = open[values[4]];
}
