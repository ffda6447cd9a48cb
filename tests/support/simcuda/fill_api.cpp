// Fills of device memory with a pattern of 1, 2 or 4 bytes. Those without a stream go to the legacy
// one, and do not wait either: on device memory they are asynchronous (driver API, "API
// synchronization behavior").
#include "simcuda/capture.hpp"
#include "simcuda/export.hpp"

namespace sim {
namespace {

CUresult fill(Driver& driver, CUstream handle, CUdeviceptr to, unsigned element, unsigned value,
              std::size_t pitch, std::size_t width, std::size_t height) {
  Stream& stream = stream_of(driver, handle);
  if (to % element != 0 || (height > 1 && pitch % element != 0)) return CUDA_ERROR_INVALID_VALUE;
  if (width == 0 || height == 0) return captures(stream) ? kUnsettled : CUDA_SUCCESS;
  std::uint64_t row = 0;
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(width, std::size_t{element}, &row) ||
      __builtin_mul_overflow(height - 1, pitch, &bytes) ||
      __builtin_add_overflow(bytes, row, &bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (height > 1 && pitch < row) return CUDA_ERROR_INVALID_VALUE;
  const auto* block = driver.memory.find(to);
  const bool there = block != nullptr ? bytes <= block->second.bytes - (to - block->first)
                                      : driver.memory.pinned(to) != nullptr;
  if (!there) return CUDA_ERROR_INVALID_VALUE;
  FillWork work;
  work.fill.dst = to;
  work.fill.pitch = pitch;
  work.fill.value = value;
  work.fill.elementSize = element;
  work.fill.width = width;
  work.fill.height = height;
  work.context = &Driver::current();
  return submit(driver, stream, std::move(work));
}

}  // namespace
}  // namespace sim

using namespace sim;

SIM_API CUresult CUDAAPI cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N) {
  return call({__func__, dstDevice}, [&](Driver& driver) -> CUresult {
    const CUresult code = enter_legacy(driver, Driver::current());
    if (code != CUDA_SUCCESS) return code;
    return fill(driver, CU_STREAM_LEGACY, dstDevice, 1, uc, 0, N, 1);
  });
}

SIM_API CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N,
                                         CUstream hStream) {
  return call({__func__, hStream},
              [&](Driver& driver) { return fill(driver, hStream, dstDevice, 1, uc, 0, N, 1); });
}

SIM_API CUresult CUDAAPI cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N,
                                          CUstream hStream) {
  return call({__func__, hStream},
              [&](Driver& driver) { return fill(driver, hStream, dstDevice, 2, us, 0, N, 1); });
}

SIM_API CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N,
                                          CUstream hStream) {
  return call({__func__, hStream},
              [&](Driver& driver) { return fill(driver, hStream, dstDevice, 4, ui, 0, N, 1); });
}

SIM_API CUresult CUDAAPI cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
                                           size_t Width, size_t Height, CUstream hStream) {
  return call({__func__, hStream}, [&](Driver& driver) {
    return fill(driver, hStream, dstDevice, 1, uc, dstPitch, Width, Height);
  });
}

SIM_API CUresult CUDAAPI cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch,
                                            unsigned short us, size_t Width, size_t Height,
                                            CUstream hStream) {
  return call({__func__, hStream}, [&](Driver& driver) {
    return fill(driver, hStream, dstDevice, 2, us, dstPitch, Width, Height);
  });
}

SIM_API CUresult CUDAAPI cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
                                            size_t Width, size_t Height, CUstream hStream) {
  return call({__func__, hStream}, [&](Driver& driver) {
    return fill(driver, hStream, dstDevice, 4, ui, dstPitch, Width, Height);
  });
}
