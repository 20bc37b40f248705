// Declares a variable of calls_lib.cu with another size.
extern __device__ int counters[8];
__global__ void wrong(int *p) { p[0] = counters[7]; }
