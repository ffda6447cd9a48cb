// A CUDA device over the simulated driver, with a few kernels. When the case ends nothing of it may
// be left in the driver.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "refrain/cuda/device.hpp"
#include "refrain/refrain.hpp"
#include "simcuda/control.hpp"

namespace refrain::test {

using Make = Kernel<Out<float>, std::uint32_t, float>;                 ///< y = value
using Map = Kernel<In<float>, Out<float>, std::uint32_t>;              ///< y = x + 1
using Update = Kernel<InOut<float>, std::uint32_t>;                    ///< y += 1
using Join = Kernel<In<float>, In<float>, Out<float>, std::uint32_t>;  ///< y = a + b

/// The image of those kernels, and of one without parameters.
SharedBytes test_image();

struct Gpu {
  explicit Gpu(DeviceOptions options = {});
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu();

  Stream stream() const { return device->stream().value(); }
  Buffer<float> buffer(const std::string& name, Role role = Role::none) const {
    return device->buffer<float>(name, kCount, role).value();
  }
  Buffer<float> filled(Stream& on, const std::string& name, float value,
                       Role role = Role::none) const {
    Buffer<float> made = buffer(name, role);
    on.write(made, std::vector<float>(kCount, value));
    return made;
  }
  template <class K>
  K kernel(const char* name) const {
    return device->kernel<K>(name).value();
  }
  /// What the driver was called for since the journal was cleared, in order.
  std::vector<std::string> journal() const;
  /// What lives in the driver; other cases of this process may have left something on purpose.
  static std::string in_driver();

  static constexpr std::uint32_t kCount = 64;
  const std::string before;
  /// What it leaves in the driver is not looked at.
  mutable bool leaves_something = false;
  std::optional<cuda::Device> device;
  const sim::Control* control = nullptr;
};

/// For a case that loses its device, and with it the process: runs it in a process of its own.
/// Answers whether this is that process.
bool in_own_process();

/// `kCount` times `value`.
inline std::vector<float> all(float value) { return std::vector<float>(Gpu::kCount, value); }

}  // namespace refrain::test
