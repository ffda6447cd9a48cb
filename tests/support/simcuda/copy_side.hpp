// One side of a copy: where its rows are. What checks a copy and what runs it see it alike.
#pragma once

#include <cstdint>

#include "cuda_api.hpp"

namespace sim {

struct CopySide {
  CUmemorytype type{};
  std::uint64_t first = 0;  ///< The address of the first byte of the first row.
  std::size_t pitch = 0;
  std::size_t height = 0;

  [[nodiscard]] std::uint64_t row(std::size_t slice, std::size_t at) const noexcept {
    return first + (slice * height + at) * pitch;
  }
  /// From the first byte to the end of the last row of a copy that is not empty.
  [[nodiscard]] std::uint64_t bytes(const CUDA_MEMCPY3D& copy) const noexcept {
    return row(copy.Depth - 1, copy.Height - 1) - first + copy.WidthInBytes;
  }
};

inline CopySide side_of(CUmemorytype type, const void* host, CUdeviceptr device, std::size_t x,
                        std::size_t y, std::size_t z, std::size_t pitch, std::size_t height) {
  const std::uint64_t base =
      type == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uint64_t>(host) : device;
  return {type, base + (z * height + y) * pitch + x, pitch, height};
}

inline CopySide source_of(const CUDA_MEMCPY3D& copy) {
  return side_of(copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcXInBytes, copy.srcY,
                 copy.srcZ, copy.srcPitch, copy.srcHeight);
}

inline CopySide destination_of(const CUDA_MEMCPY3D& copy) {
  return side_of(copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstXInBytes, copy.dstY,
                 copy.dstZ, copy.dstPitch, copy.dstHeight);
}

}  // namespace sim
