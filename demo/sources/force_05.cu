struct Particle {
    float x, y, z, mass;
};
__device__ float uniform(unsigned &state);
__device__ float block_sum(float value);
__constant__ float table_05[64] = { 0.5446f, 0.9109f, 0.2772f, 0.6436f, 0.0099f, 0.3762f, 0.7426f, 0.1089f, 0.4752f, 0.8416f, 0.2079f, 0.5743f, 0.9406f, 0.3069f, 0.6733f, 0.0396f, 0.4059f, 0.7723f, 0.1386f, 0.5050f, 0.8713f, 0.2376f, 0.6040f, 0.9703f, 0.3366f, 0.7030f, 0.0693f, 0.4356f, 0.8020f, 0.1683f, 0.5347f, 0.9010f, 0.2673f, 0.6337f, 0.0000f, 0.3663f, 0.7327f, 0.0990f, 0.4653f, 0.8317f, 0.1980f, 0.5644f, 0.9307f, 0.2970f, 0.6634f, 0.0297f, 0.3960f, 0.7624f, 0.1287f, 0.4950f, 0.8614f, 0.2277f, 0.5941f, 0.9604f, 0.3267f, 0.6931f, 0.0594f, 0.4257f, 0.7921f, 0.1584f, 0.5248f, 0.8911f, 0.2574f, 0.6238f };
static __device__ __noinline__ float shape(float r)
{
    float sum = 0.0f;
    for (int i = 0; i < 64; ++i)
        sum = sum * r + table_05[i];
    return sum;
}
__device__ float3 force_05(const Particle &a, const Particle &b)
{
    float dx = a.x - b.x, dy = a.y - b.y, dz = a.z - b.z;
    float r2 = dx * dx + dy * dy + dz * dz + 1e-6f;
    float scale = a.mass * b.mass * shape(rsqrtf(r2)) * 6.0f;
    return make_float3(dx * scale, dy * scale, dz * scale);
}
__global__ void field_05(const Particle *particles, float *field, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float energy = 0.0f;
    if (i < count)
        for (int j = 0; j < count; ++j) {
            float3 f = force_05(particles[i], particles[j]);
            energy += f.x * f.x + f.y * f.y + f.z * f.z;
        }
    energy = block_sum(energy);
    if (threadIdx.x == 0)
        field[blockIdx.x] = energy;
}
