// Memory of a device by its address: what stays when everything that names it is left out. An
// address is a number here, and means something to that device alone.
#pragma once

#include <cstdint>

namespace refrain {

/// Memory as the device names it: a pointer on the host, a CUdeviceptr on CUDA.
struct DeviceMemory {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

/// Elements in the memory of a device. Only on the host device can they be looked at from here.
template <class T>
struct DeviceSpan {
  T* address = nullptr;
  std::uint64_t size = 0;  ///< In elements.
};

}  // namespace refrain
