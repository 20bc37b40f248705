struct Particle {
    float x, y, z, mass;
};
__device__ float uniform(unsigned &state);
__device__ float block_sum(float value);
__constant__ float table_03[64] = { 0.3267f, 0.6931f, 0.0594f, 0.4257f, 0.7921f, 0.1584f, 0.5248f, 0.8911f, 0.2574f, 0.6238f, 0.9901f, 0.3564f, 0.7228f, 0.0891f, 0.4554f, 0.8218f, 0.1881f, 0.5545f, 0.9208f, 0.2871f, 0.6535f, 0.0198f, 0.3861f, 0.7525f, 0.1188f, 0.4851f, 0.8515f, 0.2178f, 0.5842f, 0.9505f, 0.3168f, 0.6832f, 0.0495f, 0.4158f, 0.7822f, 0.1485f, 0.5149f, 0.8812f, 0.2475f, 0.6139f, 0.9802f, 0.3465f, 0.7129f, 0.0792f, 0.4455f, 0.8119f, 0.1782f, 0.5446f, 0.9109f, 0.2772f, 0.6436f, 0.0099f, 0.3762f, 0.7426f, 0.1089f, 0.4752f, 0.8416f, 0.2079f, 0.5743f, 0.9406f, 0.3069f, 0.6733f, 0.0396f, 0.4059f };
static __device__ __noinline__ float shape(float r)
{
    float sum = 0.0f;
    for (int i = 0; i < 64; ++i)
        sum = sum * r + table_03[i];
    return sum;
}
__device__ float3 force_03(const Particle &a, const Particle &b)
{
    float dx = a.x - b.x, dy = a.y - b.y, dz = a.z - b.z;
    float r2 = dx * dx + dy * dy + dz * dz + 1e-6f;
    float scale = a.mass * b.mass * shape(rsqrtf(r2)) * 4.0f;
    return make_float3(dx * scale, dy * scale, dz * scale);
}
__global__ void field_03(const Particle *particles, float *field, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float energy = 0.0f;
    if (i < count)
        for (int j = 0; j < count; ++j) {
            float3 f = force_03(particles[i], particles[j]);
            energy += f.x * f.x + f.y * f.y + f.z * f.z;
        }
    energy = block_sum(energy);
    if (threadIdx.x == 0)
        field[blockIdx.x] = energy;
}
