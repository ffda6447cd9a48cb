// Kernels with parameters of every kind, compiled for the architectures that a test reads.
struct Doubles {
  double values[9];
};
struct Block {
  char bytes[5000];
};
struct alignas(64) Descriptor {
  char bytes[128];
};

extern "C" __global__ void varied(char a, double b, short c, Doubles d, float* e, uchar3 f,
                                  float4 g) {
  *e = float(a + b + c + d.values[1] + f.x + g.x);
}
extern "C" __global__ void large(Block block, int* out, char c) { *out = block.bytes[c]; }
extern "C" __global__ void none() {}
extern "C" __global__ void __launch_bounds__(256, 2) bounded(int* out) { *out = 1; }
extern "C" __global__ void shared_array(float* out) {
  __shared__ float values[333];
  values[threadIdx.x] = *out;
  __syncthreads();
  *out = values[332 - threadIdx.x];
}
extern "C" __global__ void aligned(const __grid_constant__ Descriptor d, int* out) {
  *out = d.bytes[*out];
}
#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(2, 1, 1) clustered(int* out) { *out = 1; }
#endif
