"""Kernels that were written apart from the interpreter; `unseen` has what each leaves in memory.

Each reads the first 64 words of its buffer and writes the words behind them.
"""

SOURCE = r"""
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
typedef unsigned u;
typedef unsigned long long ull;
#define K extern "C" __global__ void

K bits(u *p) {
    u i = threadIdx.x, x = p[i], y = p[i + 32], *q = p + 64 + 6 * i;
    q[0] = __clz(x) * 1000 + __popc(y);
    q[1] = __brev(x ^ y);
    q[2] = __byte_perm(x, y, y & 0x7777);
    q[3] = __ffs(x & -(y | 1) & 0xfffff000);
    q[4] = __funnelshift_l(x, y, x);
    q[5] = __funnelshift_rc(x, y, y & 63);
}

K quotients(u *p) {
    u i = threadIdx.x, *q = p + 64 + 8 * i;
    ull a = (ull)p[i] << 32 | p[i + 32], b = p[i ^ 5] | 1;
    long long c = a, d = (long long)(int)(p[i ^ 9] | 1) * 7;
    ull r = a / b; q[0] = r; q[1] = r >> 32;
    r = c / d; q[2] = r; q[3] = r >> 32;
    r = c % d; q[4] = r; q[5] = r >> 32;
    q[6] = p[i] / (p[i + 32] >> 20 | 1);
    q[7] = (int)p[i] % ((int)p[i + 32] >> 12 | 1);
}

K products(u *p) {
    u i = threadIdx.x, x = p[i], y = p[i + 32], *q = p + 64 + 8 * i;
    ull a = (ull)x << 32 | y, b = (ull)y << 32 | (x ^ 0x1234567);
    q[0] = __umulhi(x, y);
    q[1] = __mulhi((int)x, (int)y);
    ull h = __umul64hi(a, b); q[2] = h; q[3] = h >> 32;
    h = __mul64hi((long long)a, (long long)b); q[4] = h; q[5] = h >> 32;
    q[6] = __sad((int)x, (int)y, 5u) + __usad(x, y, 9u);
    q[7] = __hadd((int)x, (int)y) ^ __urhadd(x, y);
}

K singles(u *p) {
    u i = threadIdx.x, *q = p + 64 + 8 * i;
    float x = __uint_as_float(p[i] & 0x807fffff | (100 + (p[i] >> 24 & 31)) << 23);
    float y = __uint_as_float(p[i + 32] & 0x807fffff | (110 + (p[i + 32] >> 24 & 31)) << 23);
    float r[8] = {__fdiv_rn(x, y), __fsqrt_rn(fabsf(x)), __fmaf_rn(x, y, -y), __fadd_rz(x, y),
                  __fmul_rd(x, y), __frcp_rn(y), fminf(x, y), fmaxf(-x, y)};
    for (int k = 0; k < 8; k++) q[k] = __float_as_uint(r[k]);
}

K doubles(u *p) {
    u i = threadIdx.x; ull *q = (ull *)(p + 64) + 6 * i;
    double x = __hiloint2double(p[i] & 0x800fffff | (1000 + (p[i] >> 22 & 31)) << 20, p[i + 32]);
    double y = __hiloint2double(p[i + 32] & 0x800fffff | (1010 + (p[i] >> 26)) << 20, p[i]);
    double r[6] = {__ddiv_rn(x, y), __dsqrt_rn(fabs(y)), __fma_rn(x, y, -x), __dadd_ru(x, y),
                   __dmul_rz(x, y), x < y ? floor(x * 64) : trunc(y * 64)};
    for (int k = 0; k < 6; k++) q[k] = __double_as_longlong(r[k]);
}

K halves(u *p) {
    u i = threadIdx.x, *q = p + 64 + 6 * i;
    u a = p[i] & 0xbbffbbff | 0x20002000, b = p[i + 32] & 0xbbffbbff | 0x24002400;
    __half2 x = *(__half2 *)&a, y = *(__half2 *)&b, r;
    r = __hadd2(x, y); q[0] = *(u *)&r;
    r = __hmul2(x, y); q[1] = *(u *)&r;
    r = __hfma2(x, y, __hneg2(y)); q[2] = *(u *)&r;
    r = __hmax2(x, y); q[3] = *(u *)&r;
    q[4] = __hblt2(x, y) * 2 + __hlt(__low2half(x), __high2half(y));
    __nv_bfloat162 c = *(__nv_bfloat162 *)&a, d = *(__nv_bfloat162 *)&b;
    c = __hfma2(c, d, d); q[5] = *(u *)&c;
}

K conversions(u *p) {
    u i = threadIdx.x, x = p[i], *q = p + 64 + 10 * i;
    float f = (float)(int)x / 65536.0f;
    q[0] = __float2int_rn(f); q[1] = __float2int_ru(f); q[2] = __float2uint_rd(f);
    q[3] = __float_as_uint(__uint2float_rz(x));
    q[4] = __float_as_uint((float)((ull)x << 20 | 1));
    long long w = __double2ll_rd((double)(int)x * 1048577.75);
    q[5] = w; q[6] = w >> 32;
    q[7] = (u)(signed char)x * 3 + (unsigned short)(x >> 3);
    q[8] = __half_as_ushort(__float2half_rn(f));
    q[9] = __float_as_uint(__double2float_rn((double)x * 1.1));
}

K sorting(u *p) {
    __shared__ u s[64];
    u i = threadIdx.x;
    s[i] = p[i];
    for (u k = 2; k <= 64; k <<= 1)
        for (u j = k >> 1; j; j >>= 1) {
            __syncthreads();
            u o = i ^ j;
            if (o > i && (s[i] > s[o]) == !(i & k)) { u t = s[i]; s[i] = s[o]; s[o] = t; }
        }
    __syncthreads();
    p[64 + i] = s[i];
}

K scan(u *p) {
    __shared__ u sums[2];
    u i = threadIdx.x, lane = i & 31, x = p[i];
    for (u d = 1; d < 32; d <<= 1) {
        u y = __shfl_up_sync(~0u, x, d);
        if (lane >= d) x += y;
    }
    if (lane == 31) sums[i >> 5] = x;
    __syncthreads();
    p[64 + i] = i >= 32 ? x + sums[0] : x;
}

struct Big { unsigned char c[13]; short s[7]; u w[5]; };
__device__ __noinline__ Big shuffled(Big b, u x) {
    for (u k = 0; k < 13; k++) b.c[(k * 5 + x) % 13] ^= b.c[k];
    for (u k = 0; k < 7; k++) b.s[k] -= b.s[(k + x) % 7] * 3;
    b.w[x % 5] += b.c[x % 13] + b.s[x % 7];
    return b;
}
K locals(u *p) {
    u i = threadIdx.x;
    Big b;
    for (u k = 0; k < 13; k++) b.c[k] = p[i] >> k;
    for (u k = 0; k < 7; k++) b.s[k] = p[i + 32] >> k;
    for (u k = 0; k < 5; k++) b.w[k] = p[i] * k;
    b = shuffled(shuffled(b, p[i] & 1023), i);
    u r = 0;
    for (u k = 0; k < 13; k++) r = r * 31 + b.c[k];
    for (u k = 0; k < 7; k++) r = r * 31 + b.s[k];
    for (u k = 0; k < 5; k++) r = r * 31 + b.w[k];
    p[64 + i] = r;
}

__device__ __noinline__ bool odd(u n);
__device__ __noinline__ bool even(u n) { return n == 0 || odd(n - 1); }
__device__ __noinline__ bool odd(u n) { return n != 0 && even(n - 1); }
__device__ __noinline__ u ackermann(u m, u n) {
    return m == 0 ? n + 1 : ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}
K mutual(u *p) {
    u i = threadIdx.x;
    p[64 + i] = even(p[i] & 15) * 100000 + ackermann(i % 3, p[i] >> 4 & 3);
}

K blocks(u *p) {
    u n = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    u b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    p[64 + b * blockDim.x * blockDim.y * blockDim.z + n] =
        p[n] + blockIdx.y * 100 + blockIdx.x * 10 + threadIdx.z * 1000;
}

K counters(u *p) {
    __shared__ u s[3];
    __shared__ ull wide;
    u i = threadIdx.x, *q = p + 64;
    if (i == 0) { s[0] = 7; s[1] = ~0u; s[2] = 0; wide = 1; for (int k = 0; k < 8; k++) q[k] = 50; }
    __syncthreads();
    atomicSub(&s[0], p[i]);
    atomicAnd(&s[1], p[i] | 0xff);
    atomicOr(&s[2], p[i] & 0xf0f0);
    atomicMax(&wide, (ull)p[i] << 8);
    atomicDec(&q[0], 20);
    atomicMax((int *)&q[1], (int)p[i]);
    atomicMin(&q[2], p[i] >> 27);
    ull *w = (ull *)(q + 4), old = *w, seen;
    do { seen = old; old = atomicCAS(w, seen, seen + p[i] * 3ull); } while (old != seen);
    u mine = atomicExch(&q[6 + (i & 1)], i);
    (void)mine;
    __syncthreads();
    if (i == 0) {
        q[3] = s[0]; q[8] = s[1]; q[9] = s[2]; q[10] = wide; q[11] = wide >> 32;
    }
}

K halving(u *p) {
    extern __shared__ u dynamic[];
    volatile unsigned char *bytes = (volatile unsigned char *)(dynamic + 64);
    u i = threadIdx.x;
    dynamic[i] = p[i]; bytes[i] = p[i] >> 7;
    __syncthreads();
    for (u d = 32; d; d >>= 1) {
        if (i < d) { dynamic[i] = dynamic[i] * 3 + dynamic[i + d]; bytes[i] += bytes[i + d]; }
        __syncthreads();
    }
    if (i < 2) p[64 + i] = dynamic[i] + bytes[i];
}

struct Row { unsigned char a; short b; u c; ull d; float e[2]; };
__constant__ Row rows[4] = {{1, -2, 3, 4ull << 40, {1.5f, -2}}, {200, 300, 1u << 31, 7, {0, 9}},
                            {5, 6, 7, ~0ull, {8, 0.25f}}, {255, -32768, 11, 12, {-13, 14}}};
__constant__ uint4 quads[2] = {{1, 2, 3, 4}, {5, 60, 700, 8000}};
K constants(u *p) {
    u i = threadIdx.x, k = p[i] & 3;
    Row r = rows[k];
    uint4 v = quads[k & 1];
    p[64 + i] = r.a * 3 + r.b * 5 + r.c * 7 + (u)(r.d >> 33) * 11 + (u)(int)(r.e[i & 1] * 4) +
                v.x + v.y * 2 + v.z * 3 + v.w * 4;
}

K crowds(u *p) {
    u i = threadIdx.x, x = p[i], r = 0;
    for (u turn = 0; turn < 20; turn++) {
        if (x < 3) break;
        x = x % 3 ? x / 2 : x - x / 3;
        r++;
    }
    u ended = __ballot_sync(~0u, x < 3);
    if (x & 4) r += 100 * __popc(__match_any_sync(__activemask(), x >> 3 & 3));
    __syncwarp();
    if (r & 1) r += __reduce_max_sync(__ballot_sync(__activemask(), 1), 0) * 5;
    __syncwarp();
    u same = __match_any_sync(~0u, r % 10);
    p[64 + 3 * i] = x; p[65 + 3 * i] = ended; p[66 + 3 * i] = __popc(same);
}

K packed(u *p) {
    u i = threadIdx.x, x = p[i], y = p[i + 32], *q = p + 64 + 8 * i;
    q[0] = __dp4a(x, y, 77u); q[1] = __dp4a((int)x, (int)y, -9);
    q[2] = __dp2a_lo((int)x, (int)y, 5); q[3] = __vadd4(x, y);
    q[4] = __vmaxs2(x, y); q[5] = __vabsdiffu4(x, y);
    q[6] = __vcmpgtu4(x, y); q[7] = __vsubus2(x, y);
}

struct Base {
    u n;
    __device__ Base(u n) : n(n) {}
    __device__ virtual u value(u x) const { return x + n; }
    __device__ virtual u twice(u x) const { return value(value(x)); }
};
struct Left : virtual Base {
    __device__ Left(u n) : Base(n) {}
    __device__ u value(u x) const override { return x * n ^ 5; }
};
struct Right : virtual Base {
    __device__ Right(u n) : Base(n + 1) {}
    __device__ u twice(u x) const override { return value(x) + 1; }
};
struct Both final : Left, Right {
    __device__ Both(u n) : Base(n), Left(n), Right(n) {}
    __device__ u twice(u x) const override { return Right::twice(x) * 2; }
};
K diamonds(u *p) {
    u i = threadIdx.x, x = p[i];
    Base base(3); Left left(5); Right right(7); Both both(9);
    Base *all[4] = {&base, &left, &right, &both};
    p[64 + i] = all[x & 3]->twice(x) ^ all[x >> 2 & 3]->value(x);
}

K checksums(u *p) {
    u i = threadIdx.x, c = ~0u;
    const unsigned char *text = (const unsigned char *)(p + (i & 31));
    for (u k = 0; k < 9 + (i & 3); k++) {
        c ^= text[k];
        for (int b = 0; b < 8; b++) c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
    }
    p[64 + i] = ~c;
}

K wides(u *p) {
    u i = threadIdx.x; ull *q = (ull *)(p + 64) + 2 * i;
    unsigned __int128 a = ((unsigned __int128)p[i] << 70) + p[i + 32];
    __int128 b = -((__int128)p[i ^ 1] << 33) + p[i + 32];
    a = a * (p[i ^ 3] | 1) + (a >> 37);
    b = b * 1000003 - (b >> 5) + (__int128)(a & 0xffff);
    q[0] = (ull)a ^ (ull)(a >> 64); q[1] = (ull)b ^ (ull)(b >> 64) * 3;
}

K groups(u *p) {
    u i = threadIdx.x;
    cg::thread_block block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    u r = tile.shfl_xor(p[i], 3) + tile.meta_group_rank() * 1000;
    auto odd = cg::binary_partition(cg::tiled_partition<32>(block), p[i] & 1);
    if (p[i] & 1) r ^= odd.thread_rank() * 77 + odd.size() * 3 + odd.shfl(p[i], 0);
    tile.sync();
    p[64 + i] = r + tile.any(p[i] > 0xc0000000u) + tile.ballot(p[i] & 2) * 16;
}
"""
