#pragma once

// In libnoise: device code for other libraries, and a variable that the host sets.
__device__ float noise(int x, int y);
void set_roughness(float roughness);

// In libhills: device code that calls libnoise's, and a kernel of its own.
__device__ float height(int x, int y);
void flatten(float *heights, int width, int rows, float least);
