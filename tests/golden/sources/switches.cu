// Jump tables in two files: functions that one names in another order than the other defines them, and
// a weak one that both have. Cases have too little in common to become anything but a table.
#define TABLE(n) \
    switch (x) { \
    case 0: x = x * (n + 3) + p[1]; p[n] = x ^ 17; break; \
    case 1: x = x * (n + 9) + p[n]; p[2] = x ^ 5; if (x & 4) p[x & 7] += 1; break; \
    case 2: x = x * (n + 2) + p[3]; p[1] = x ^ 77; break; \
    case 3: x = x * (n + 7) + p[5]; p[n] = x ^ 31; if (x & 2) p[x & 3] += 3; break; \
    case 4: x = x * (n + 5) + p[2]; p[4] = x ^ 11; break; \
    case 5: x = x * (n + 4) + p[n]; p[6] = x ^ 3; break; \
    default: x = -x; \
    }

extern "C" inline __device__ __noinline__ int shared_by_both(int x, int *p)
{
    TABLE(1)
    return x;
}

#ifdef LIBRARY
extern "C" __device__ __noinline__ int first(int x, int *p)
{
    TABLE(2)
    return x;
}

extern "C" __device__ __noinline__ int second(int x, int *p)
{
    TABLE(3)
    return x + shared_by_both(x, p);
}
#else
extern "C" __device__ int second(int x, int *p);
extern "C" __device__ int first(int x, int *p);

__global__ void both(int *p)
{
    int x = p[0] & 7;
    p[8] = second(x, p) + first(x, p);
}

__global__ void own(int *p)
{
    int x = p[0] & 7;
    TABLE(5)
    p[8] = first(x, p) + shared_by_both(x, p);
}
#endif
