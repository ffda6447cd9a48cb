// The CUDA kernel of the quickstart. Its name is the registered one, and its parameters are those
// of `Saxpy` in quickstart.cpp.
#include "quickstart/saxpy_cuda.hpp"

extern "C" __global__ void __launch_bounds__(kSaxpyBlock) saxpy(const float* x, float* y, float a) {
  saxpy_thread(static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x, x, y, a);
}
