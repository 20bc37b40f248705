__device__ int shared_by_all_too[2];

template <class T>
__device__ __noinline__ T twice(T value) {
    return value + value + shared_by_all_too[0];
}

__device__ __noinline__ int measured(int value, double scale) {
    __syncwarp();
    if (value > 3) {
        __syncthreads();
    }
    return (int)(scale * value / (value + 1.5)) + __popc(__activemask());
}

__global__ void lib_kernel(int *values) {
    values[0] = measured(values[1], 0.25) + twice(values[2]);
    __syncthreads();
}
