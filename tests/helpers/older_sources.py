"""Sources whose code differs between releases of the compiler, for sm_100 and later."""

from __future__ import annotations

# Divergence, calls, recursion, jump tables, fences, and the instructions that releases schedule
# differently: FP64, tensor cores, integer additions.
EVERYTHING = """
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
typedef int (*function)(int);
template <int N> __device__ __noinline__ int sum(int x)
{
    int s = 0;
    for (int i = 0; i < x; i++) if (i % N) s += i;
    return s;
}
static __device__ __noinline__ int recursive(int n)
{
    return n < 2 ? n : recursive(n - 1) + recursive(n - 2);
}
__device__ __noinline__ int branches(int x)
{
    if (x > 3) return recursive(x);
    return x - 4;
}
__device__ function functions[2] = {branches, sum<3>};
__global__ void diverge(int *p, int n)
{
    int i = threadIdx.x;
    if (i >= n) return;
    if (p[i] > 3) { for (int j = 0; j < p[i]; j++) p[j] += p[j * 2]; }
    else if (p[i] < -3) p[i] = recursive(p[i]);
    __syncthreads();
    while (p[i] > 7) { p[i] >>= 1; if (p[i] == 9) continue; if (p[i] == 11) break; p[0]++; }
    __syncwarp();
    if (__any_sync(~0u, p[i] > 3)) p[1] = __shfl_xor_sync(~0u, p[i], 3);
}
__global__ void cases(int *p)
{
    switch (p[0]) {
    case 0: p[1] = 3 * p[7]; break;
    case 1: p[2] = p[3] * 5; break;
    case 2: p[3] = p[9] - 4; break;
    case 3: p[4] = functions[p[5] & 1](p[6]); break;
    case 4: p[8] = p[7] | 5; return;
    case 5: p[9] = sum<5>(5); break;
    case 6: p[10] = atomicAdd(p, 4); break;
    default: p[11] = 9;
    }
    p[12] = p[13];
}
__global__ void fences(int *p, long long *q)
{
    __shared__ int own[64];
    own[threadIdx.x] = p[threadIdx.x];
    __threadfence();
    q[1] = q[2] + q[3] - (q[4] << p[5]);
    __threadfence_system();
    p[2] = p[3] / p[4];
    __threadfence_block();
    q[3] = q[5] / q[6];
    __syncthreads();
    if (own[p[9]] == 3) { p[4] = 1; return; }
    p[3] = own[63 - threadIdx.x];
}
__global__ void doubles(double *p)
{
    int i = threadIdx.x;
    p[i] = p[i + 1] * p[i + 2] + p[i + 3];
    if (p[i] > p[i + 4]) p[i + 5] = sqrt(p[i]);
    p[i + 6] = p[i] / p[i + 7];
    p[i + 8] = pow(p[i], p[i + 1]);
    p[i + 9] = (double)(float)p[3] + (long long)p[i + 4];
}
__global__ void floats(float *p, __half *q)
{
    int i = threadIdx.x;
    p[i] = sinf(p[i + 1]) + p[i + 2] / p[i + 3];
    p[i + 9] = sqrtf(p[i]) + __expf(p[i]);
    q[i] = __hfma(q[i + 1], q[i + 2], q[i + 3]);
}
__global__ void tensors(__half *a, __half *b, float *c)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.f);
    for (int i = 0; i < 4; i++) {
        wmma::load_matrix_sync(fa, a + i * 256, 16);
        wmma::load_matrix_sync(fb, b + i * 256, 16);
        wmma::mma_sync(fc, fa, fb, fc);
    }
    wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}
"""

# Only divergence: optimized, this code differs between releases only in ways that links remove.
DIVERGENCE = """
__device__ __noinline__ float halves(float x, float y)
{
    if (x > y) { do { x = x * 0.5f; } while (x > y); }
    return x * y;
}
template <int N> __device__ __noinline__ float powers(float x)
{
    if (x > N) { while (x < 1e9f) x = x * x; }
    return x;
}
__global__ void loops(float *p, float y)
{
    float x = p[0];
    if (x > 3.f) { do { x = x * x; if (x == 7.f) break; } while (x < y); }
    else if (x < -3.f) { do { x = x * 0.25f; } while (x < -y); }
    __syncthreads();
    p[1] = x;
    if (p[2] == 4.f) { p[3] = 5.f; return; }
    p[4] = halves(p[5], p[6]);
}
__global__ void fences(float *p)
{
    if (p[0] > 3.f) { p[1] = powers<2>(p[2]); __threadfence(); }
    else if (p[0] < 1.f) { p[1] = powers<3>(p[2]); }
    p[7] = 2.f;
    __threadfence_system();
    if (__any_sync(~0u, p[2] > 4.f)) p[3] = __shfl_xor_sync(~0u, p[4], 2);
}
"""
