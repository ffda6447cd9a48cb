// Copies and fills, row by row, when the device runs them.
#include <algorithm>
#include <cstring>

#include "simcuda/driver.hpp"
#include "simcuda/submit.hpp"

namespace sim {
namespace {

/// One side of a copy.
struct Side {
  CUmemorytype type{};
  const void* host = nullptr;
  CUdeviceptr device = 0;
  std::size_t x = 0;
  std::size_t y = 0;
  std::size_t z = 0;
  std::size_t pitch = 0;
  std::size_t height = 0;

  /// Where a row is: a host pointer that may be used, or null.
  [[nodiscard]] std::byte* row(const Memory& memory, std::size_t row_y, std::size_t slice,
                               std::size_t width) const {
    const std::size_t offset = ((z + slice) * height + y + row_y) * pitch + x;
    std::uint64_t address = device;
    if (type == CU_MEMORYTYPE_HOST) address = reinterpret_cast<std::uint64_t>(host);
    address += offset;
    // Ordinary host memory: whether it is there is for the caller to know.
    if (type != CU_MEMORYTYPE_DEVICE && !memory.is_device(address)) {
      return reinterpret_cast<std::byte*>(address);  // NOLINT: it is a host address
    }
    return static_cast<std::byte*>(memory.reach(address, width));
  }
};

Side source_of(const CUDA_MEMCPY3D& copy) {
  return {copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcXInBytes,
          copy.srcY,          copy.srcZ,    copy.srcPitch,  copy.srcHeight};
}

Side destination_of(const CUDA_MEMCPY3D& copy) {
  return {copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstXInBytes,
          copy.dstY,          copy.dstZ,    copy.dstPitch,  copy.dstHeight};
}

/// Every row of a copy, found under the mutex; empty when one of them is not there.
using Rows = std::vector<std::pair<std::byte*, const std::byte*>>;
Rows rows_of(Driver& driver, const CUDA_MEMCPY3D& copy) {
  const std::lock_guard lock(driver.mutex);
  const Side source = source_of(copy);
  const Side destination = destination_of(copy);
  Rows rows;
  for (std::size_t slice = 0; slice < copy.Depth; ++slice) {
    for (std::size_t row = 0; row < copy.Height; ++row) {
      rows.emplace_back(destination.row(driver.memory, row, slice, copy.WidthInBytes),
                        source.row(driver.memory, row, slice, copy.WidthInBytes));
      if (rows.back().first == nullptr || rows.back().second == nullptr) return {};
    }
  }
  return rows;
}

}  // namespace

CUresult run_copy(Driver& driver, const CUDA_MEMCPY3D& copy) {
  if (copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) return CUDA_SUCCESS;
  const Rows rows = rows_of(driver, copy);
  if (rows.empty()) return CUDA_ERROR_ILLEGAL_ADDRESS;
  for (const auto& [to, from] : rows) std::memmove(to, from, copy.WidthInBytes);
  return CUDA_SUCCESS;
}

CUresult run_fill(Driver& driver, const CUDA_MEMSET_NODE_PARAMS& fill) {
  for (std::size_t row = 0; row < fill.height; ++row) {
    std::byte* to = nullptr;
    {
      const std::lock_guard lock(driver.mutex);
      to = static_cast<std::byte*>(
          driver.memory.reach(fill.dst + row * fill.pitch, fill.width * fill.elementSize));
    }
    if (to == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
    for (std::size_t i = 0; i < fill.width; ++i) {
      std::memcpy(to + i * fill.elementSize, &fill.value, fill.elementSize);  // little-endian
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace sim
