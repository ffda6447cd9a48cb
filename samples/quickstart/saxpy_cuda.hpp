// The saxpy as CUDA runs it: what one thread does. nvcc compiles it into the kernel of saxpy.cu;
// any C++ compiler makes a plain function of it, so that it is tested where there is no GPU.
//
// It is launched with `refrain::grid(kSaxpyCount)`. A thread beyond the end does nothing. The
// length is a constant, because a CUDA kernel gets the address of a view and not its size; where it
// varies, it is one more parameter of the kernel.
#pragma once

#include <cstddef>

#ifdef __CUDACC__
#define SAXPY_DEVICE __device__
#else
#define SAXPY_DEVICE
#endif

inline constexpr unsigned kSaxpyBlock = 256;      ///< The most threads in one block.
inline constexpr std::size_t kSaxpyCount = 1024;  ///< What the quickstart's buffers hold.

SAXPY_DEVICE inline void saxpy_thread(std::size_t index, const float* x, float* y, float a) {
  if (index < kSaxpyCount) y[index] += a * x[index];
}
