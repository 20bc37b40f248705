// Weak definitions of C++: template instances and virtual functions; templates_b.cu has them too.
template <typename T> __device__ __noinline__ T twice(T x) { return x + x; }
template <int N> __global__ void fill(int *p)
{
    __shared__ int b[N];
    b[threadIdx.x % N] = N;
    __syncthreads();
    p[threadIdx.x] = b[p[0] % N];
}
struct Shape {
    int tag;
    __device__ virtual int area(int x) { return x + tag; }
};
struct Square : Shape {
    __device__ int area(int x) override { return x * x; }
};
template __global__ void fill<4>(int *);
__global__ void measure(int *p)
{
    Shape shape;
    Square square;
    shape.tag = p[3];
    Shape *s = p[0] ? &shape : &square;
    p[1] = s->area(twice(p[2]));
}
__device__ int up(int x) { return x + 1; }
__device__ int down(int x) { return x - 1; }
__device__ int (*steps[2])(int) = {up, down};
__global__ void step(int *p) { p[0] = steps[p[1] & 1](p[2]); }
