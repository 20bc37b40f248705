// A small particle simulation, split over modules as a large one would be: functions cross modules,
// so nothing runs without a linker.

#pragma once

struct Particle {
    float x, y, z, mass;
};

__device__ float uniform(unsigned &state);
__device__ float block_sum(float value);
