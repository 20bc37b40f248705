// Functions of the driver, and library code with literal pools.
#include <cassert>
#include <cstdio>

__device__ __noinline__ double wave(double x) { return sin(x) / (x + 3.0); }
__global__ void report(double *p, int n)
{
    assert(n > 0);
    printf("wave %f\n", wave(p[0]));
}
__global__ void allocate(long long *p, int n)
{
    void *q = malloc(n);
    p[0] = (long long)q / p[1];
    free(q);
}
__global__ void exponential(double *p) { p[0] = exp(p[1]); }
