__device__ int square(int value)
{
    return value * value;
}
