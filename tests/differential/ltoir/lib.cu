__device__ int g=4; __constant__ int c[4]={1,2,3};
__device__ int twice(int a) { return 2*a+c[a&3]; }
template<int N> __device__ __noinline__ int w(int a){return a*N;}
__global__ void k3(int *p){ *p = w<3>(*p)+g; }
