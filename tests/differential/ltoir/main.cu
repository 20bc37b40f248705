__device__ int twice(int a);
extern __device__ int g;
__device__ __noinline__ int loc(int a){ __syncthreads(); return a*g+twice(a+1);}
__global__ void k(int *p) { __shared__ int s[32]; s[threadIdx.x]=*p; __syncthreads(); *p = twice(loc(s[3])); }
template<int N> __device__ __noinline__ int w(int a){return a*N;}
__global__ void k2(int *p){ *p = w<3>(*p); }
