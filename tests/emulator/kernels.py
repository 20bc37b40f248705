"""Kernels that use what the emulator models, linked by both linkers."""

from __future__ import annotations

import functools

from helpers import oracle

from emulator.launching import link_both

SOURCE = r"""
#include <cassert>
#include <cstdio>
#include <cuda_pipeline.h>
#include <cuda/barrier>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
#define K extern "C" __global__ void

__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
K recursion(int *p) { p[threadIdx.x] = fib(threadIdx.x & 7); }

typedef int (*F)(int);
__device__ __noinline__ int f0(int x) { return x + 1; }
__device__ __noinline__ int f1(int x) { return x * 3; }
__device__ __noinline__ int f2(int x) { return x ^ 0x55; }
__constant__ F in_constants[3] = {f0, f1, f2};
__device__ F in_globals[3] = {f2, f0, f1};
K pointers(int *p) {
    int i = threadIdx.x;
    p[i] = in_constants[i % 3](i) * 1000 + in_globals[i % 3](i);
}

K switches(int *p) {
    int i = threadIdx.x, r = 7;
    for (int k = 0; k < i; k++)
        switch (p[k] & 15) {
        case 0: r += 3; break;
        case 1: r *= 5; break;
        case 2: r ^= 0x3c; break;
        case 3: r -= k; break;
        case 4: r = r << 1 | 1; break;
        case 5: r = ~r; break;
        case 6: r += p[0]; break;
        case 7: r = r / 3; break;
        case 8: r = r % 1000; break;
        default: r++;
        }
    __syncwarp();
    p[i + 32] = r;
}

K divergence(int *p, int n) {
    int i = threadIdx.x, a = p[i], steps = 0;
    while (a != 1) {
        a = a & 1 ? a * 3 + 1 : a >> 1;
        if (++steps > n) break;
        if (a == 5) continue;
    }
    unsigned done = __ballot_sync(~0u, a == 1);
    if (i & 1) {
        int other = __shfl_xor_sync(0xaaaaaaaa, steps, 2);
        p[i + 32] = other;
    } else {
        p[i + 32] = __shfl_down_sync(0x55555555, steps, 2, 16);
    }
    __syncwarp();
    p[i] = done;
    p[i + 64] = steps;
}

K warps(int *p) {
    int i = threadIdx.x, a = p[i];
    int *q = p + 32;
    q[i] = __shfl_sync(~0u, a, 3); q += 32;
    q[i] = __shfl_up_sync(~0u, a, 2, 8); q += 32;
    q[i] = __shfl_down_sync(~0u, a, 3, 16); q += 32;
    q[i] = __shfl_xor_sync(~0u, a, 5); q += 32;
    q[i] = __ballot_sync(~0u, a & 1); q += 32;
    q[i] = __any_sync(~0u, a > 90) + 2 * __all_sync(~0u, a >= 0); q += 32;
    q[i] = __match_any_sync(~0u, a % 5); q += 32;
    int same;
    q[i] = __match_all_sync(~0u, a / 1000, &same) + same; q += 32;
    q[i] = __reduce_add_sync(~0u, a); q += 32;
    q[i] = __reduce_max_sync(~0u, a - 50); q += 32;
    q[i] = i < 9 ? __activemask() : __activemask() + 1;
    q += 32;
    if (i < 16) q[i] = __reduce_or_sync(0xffff, (unsigned)a);
    else q[i] = __reduce_and_sync(0xffff0000, (unsigned)a);
}

K barriers(int *p) {
    __shared__ int s[64];
    int i = threadIdx.x;
    s[i] = p[i];
    __syncthreads();
    int other = s[i ^ 33];
    int count = __syncthreads_count(other & 1);
    int any = __syncthreads_or(other > 60), all = __syncthreads_and(other >= 0);
    if (i < 32) asm volatile("bar.sync 1, 64;"); else asm volatile("bar.arrive 1, 64;");
    p[i] = other + 100 * count + 10000 * any + 20000 * all;
}

K mbarriers(int *p) {
    __shared__ cuda::barrier<cuda::thread_scope_block> b;
    __shared__ int s[64];
    int i = threadIdx.x;
    if (i == 0) init(&b, blockDim.x);
    __syncthreads();
    for (int k = 0; k < 3; k++) {
        s[i] = p[i] + k;
        b.arrive_and_wait();
        p[i] = s[(i + 1) & 63];
        b.arrive_and_wait();
    }
    auto token = b.arrive();
    b.wait(std::move(token));
    b.arrive_and_drop();
}

K copies(int *p) {
    extern __shared__ int4 s[];
    int i = threadIdx.x;
    __pipeline_memcpy_async(s + i, (int4 *)p + i, 16);
    __pipeline_memcpy_async(s + 32 + i, (int4 *)p + i, 16, 12);
    __pipeline_memcpy_async((int *)(s + 64) + i, p + i, 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    int4 a = s[31 - i], b = s[32 + i];
    int c = ((int *)(s + 64))[i ^ 1];
    __syncthreads();
    p[i] = a.x + a.w;
    p[32 + i] = b.x + 3 * b.y + 5 * b.z + 7 * b.w;
    p[64 + i] = c;
}

K atomics(int *p) {
    __shared__ int s[4];
    int i = threadIdx.x;
    if (i < 4) s[i] = 0;
    __syncthreads();
    atomicAdd(&s[i & 3], i);
    atomicMax(&p[0], i * 7 % 32);
    atomicMin(&p[1], -i);
    atomicXor(&p[2], 1 << i);
    atomicAdd((float *)&p[3], 0.5f);
    atomicAdd((unsigned long long *)&p[4], 0x100000001ull);
    atomicInc((unsigned *)&p[6], 10);
    if (i == 5) atomicCAS(&p[7], 9, 77);
    int *either = i & 1 ? &s[1] : &p[8];
    atomicAdd(either, 2);
    atomicAdd((double *)&p[10], 1.5);
    __syncthreads();
    if (i < 4) p[12 + i] = s[i];
}

K output(int *p) {
    int i = threadIdx.x;
    if (i < 2) printf("%d %s %5.2f %lld %x%%\n", i, i ? "one" : "zero", i * 1.5, -5ll * i, 255);
    int *m = (int *)malloc(8);
    m[1] = i;
    p[i] = m[1] + 1;
    free(m);
}

K failing(int *p, int n) { assert(p[threadIdx.x] < n); p[threadIdx.x] = 1; }
K outside(int *p, int n) { p[n] = 1; }

K local(int *p, int n) {
    int a[40], i = threadIdx.x;
    for (int k = 0; k < 40; k++) a[k] = k * k + i;
    int s = 0;
    for (int k = 0; k < n; k++) s = s * 3 + a[(p[i] + k) % 40];
    ((short *)a)[n] = 7;
    p[i] = s + a[n / 2] + ((signed char *)p)[128];
}

K clusters(int *p) {
    __shared__ int s[64];
    int i = threadIdx.x;
    s[i] = i;
#if __CUDA_ARCH__ >= 900
    cg::cluster_group c = cg::this_cluster();
    c.sync();
    int *q = c.map_shared_rank(s, 0);
    p[i] = q[63 - i] + c.block_rank() + c.num_blocks();
    c.sync();
#else
    __syncthreads();
    p[i] = s[63 - i] + 1;
#endif
}

K spins(int *p) {
    for (int turn = 0; turn < 2; turn++) {
        bool done = false;
        while (!done) {
            if (atomicCAS(&p[0], 0, 1) == 0) {
                p[1] = p[1] + 1;
                __threadfence();
                atomicExch(&p[0], 0);
                done = true;
            }
        }
    }
}
"""


@functools.cache
def images(arch: str) -> tuple[bytes, ...]:
    cubin = oracle.compile(SOURCE, arch)
    options = [f"--library-path={oracle.device_runtime()}", "--library=cudadevrt"]
    return tuple(link_both([cubin], arch, options))
