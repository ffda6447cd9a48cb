// Copies and fills, row by row, when the device runs them.
#include <algorithm>
#include <cstring>

#include "simcuda/copy_side.hpp"
#include "simcuda/driver.hpp"
#include "simcuda/submit.hpp"

namespace sim {
namespace {

/// Where a row is: memory that may be used, or null.
std::byte* reach(const Memory& memory, const CopySide& side, std::uint64_t row, std::size_t width) {
  // Ordinary host memory: whether it is there is for the caller to know.
  if (side.type != CU_MEMORYTYPE_DEVICE && !memory.is_device(row)) {
    return reinterpret_cast<std::byte*>(row);  // NOLINT: it is a host address
  }
  return static_cast<std::byte*>(memory.reach(row, width));
}

/// Every row of a copy, found under the mutex; empty when one of them is not there.
using Rows = std::vector<std::pair<std::byte*, const std::byte*>>;
Rows rows_of(Driver& driver, const CUDA_MEMCPY3D& copy) {
  const std::lock_guard lock(driver.mutex);
  const CopySide source = source_of(copy);
  const CopySide destination = destination_of(copy);
  Rows rows;
  for (std::size_t slice = 0; slice < copy.Depth; ++slice) {
    for (std::size_t row = 0; row < copy.Height; ++row) {
      rows.emplace_back(
          reach(driver.memory, destination, destination.row(slice, row), copy.WidthInBytes),
          reach(driver.memory, source, source.row(slice, row), copy.WidthInBytes));
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
