#pragma once

// Defined in filters.cu; calls from other files are what the device linker resolves.
__device__ float smooth(const float *samples, int at, int count);
__device__ float scale(float sample);

extern __constant__ float gain;
