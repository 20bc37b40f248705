struct Particle {
    float x, y, z, mass;
};
__device__ float uniform(unsigned &state);
__device__ float block_sum(float value);
__constant__ float table_00[64] = { 0.0000f, 0.3663f, 0.7327f, 0.0990f, 0.4653f, 0.8317f, 0.1980f, 0.5644f, 0.9307f, 0.2970f, 0.6634f, 0.0297f, 0.3960f, 0.7624f, 0.1287f, 0.4950f, 0.8614f, 0.2277f, 0.5941f, 0.9604f, 0.3267f, 0.6931f, 0.0594f, 0.4257f, 0.7921f, 0.1584f, 0.5248f, 0.8911f, 0.2574f, 0.6238f, 0.9901f, 0.3564f, 0.7228f, 0.0891f, 0.4554f, 0.8218f, 0.1881f, 0.5545f, 0.9208f, 0.2871f, 0.6535f, 0.0198f, 0.3861f, 0.7525f, 0.1188f, 0.4851f, 0.8515f, 0.2178f, 0.5842f, 0.9505f, 0.3168f, 0.6832f, 0.0495f, 0.4158f, 0.7822f, 0.1485f, 0.5149f, 0.8812f, 0.2475f, 0.6139f, 0.9802f, 0.3465f, 0.7129f, 0.0792f };
static __device__ __noinline__ float shape(float r)
{
    float sum = 0.0f;
    for (int i = 0; i < 64; ++i)
        sum = sum * r + table_00[i];
    return sum;
}
__device__ float3 force_00(const Particle &a, const Particle &b)
{
    float dx = a.x - b.x, dy = a.y - b.y, dz = a.z - b.z;
    float r2 = dx * dx + dy * dy + dz * dz + 1e-6f;
    float scale = a.mass * b.mass * shape(rsqrtf(r2)) * 1.0f;
    return make_float3(dx * scale, dy * scale, dz * scale);
}
__global__ void field_00(const Particle *particles, float *field, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float energy = 0.0f;
    if (i < count)
        for (int j = 0; j < count; ++j) {
            float3 f = force_00(particles[i], particles[j]);
            energy += f.x * f.x + f.y * f.y + f.z * f.z;
        }
    energy = block_sum(energy);
    if (threadIdx.x == 0)
        field[blockIdx.x] = energy;
}
