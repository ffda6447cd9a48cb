// The host device: real streams, real memory, kernels that are functions. The default where there
// is no GPU, and the device on which everything is tested.
#pragma once

#include <filesystem>
#include <memory>

#include "refrain/device/device.hpp"
#include "refrain/device/stream.hpp"
#include "refrain/host/kernel_registry.hpp"

namespace refrain::host {

/// A host device of its own, with its own memory, kernels and table. Safe to share; copies share.
class Device : public refrain::Device {
 public:
  explicit Device(DeviceOptions options = {});

  /// Registers the kernels of `entry`. After an error those before the refused one stay.
  Result<void> register_kernels(RegisterKernels entry) const;
  /// Registers the kernels of a shared object, which stays loaded. The error names the file.
  Result<void> load_kernels(const std::filesystem::path& path) const;
  /// For kernels whose bodies carry state of the caller's.
  [[nodiscard]] KernelRegistry& kernels() const noexcept { return *kernels_; }

 private:
  Device(std::shared_ptr<KernelRegistry> kernels, DeviceOptions options);

  std::shared_ptr<KernelRegistry> kernels_;
};

/// The host's backend over `kernels`; for tests that wrap it.
std::shared_ptr<Backend> make_backend(std::shared_ptr<KernelRegistry> kernels);

}  // namespace refrain::host
