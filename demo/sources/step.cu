struct Particle {
    float x, y, z, mass;
};
__device__ float uniform(unsigned &state);
__device__ float block_sum(float value);
__device__ float3 force_00(const Particle &, const Particle &);
__device__ float3 force_01(const Particle &, const Particle &);
__device__ float3 force_02(const Particle &, const Particle &);
__device__ float3 force_03(const Particle &, const Particle &);
__device__ float3 force_04(const Particle &, const Particle &);
__device__ float3 force_05(const Particle &, const Particle &);
__device__ float3 force_06(const Particle &, const Particle &);
__device__ float3 force_07(const Particle &, const Particle &);
typedef float3 (*Force)(const Particle &, const Particle &);
__device__ Force forces[] = { force_00, force_01, force_02, force_03, force_04, force_05, force_06, force_07 };
__global__ void start(Particle *particles, int count, unsigned seed)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned state = seed * 2654435761u + i + 1;
    if (i < count)
        particles[i] = { uniform(state), uniform(state), uniform(state), 1.0f + uniform(state) };
}
__global__ void step(const Particle *now, Particle *next, int count, int kind, float time)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    float3 sum = make_float3(0.0f, 0.0f, 0.0f);
    for (int j = 0; j < count; ++j) {
        float3 f = forces[kind](now[i], now[j]);
        sum.x += f.x;
        sum.y += f.y;
        sum.z += f.z;
    }
    next[i] = { now[i].x + sum.x * time, now[i].y + sum.y * time, now[i].z + sum.z * time,
                now[i].mass };
}
