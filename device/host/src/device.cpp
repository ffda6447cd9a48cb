#include "refrain/host/device.hpp"

#include <dlfcn.h>

#include "refrain/base/text.hpp"

namespace refrain::host {

Device::Device(DeviceOptions options)
    : Device(std::make_shared<KernelRegistry>(), std::move(options)) {}

Device::Device(std::shared_ptr<KernelRegistry> kernels, DeviceOptions options)
    : refrain::Device(make_backend(kernels), std::move(options)), kernels_(std::move(kernels)) {}

Result<void> Device::register_kernels(RegisterKernels entry) const {
  entry(*kernels_);
  return kernels_->take_refusal();
}

Result<void> Device::load_kernels(const std::filesystem::path& path) const {
  // Never unloaded: recordings, plans and queued work point into it.
  // A bare name would be looked for among the system's libraries, and not where it was said.
  const std::filesystem::path file = path.has_parent_path() ? path : "." / path;
  void* const object = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) {
    const char* const why = dlerror();  // NOLINT: of this thread, with glibc
    return Error(ErrorKind::file_io, "Kernels cannot be loaded from " + quote(path.string()) +
                                         ": " + (why != nullptr ? why : "no reason given") + ".");
  }
  void* const symbol = dlsym(object, kRegisterKernelsSymbol);
  if (symbol == nullptr) {
    return Error(ErrorKind::kernel_missing,
                 quote(path.string()) + " exports no " + kRegisterKernelsSymbol + ".");
  }
  const Result<void> registered = register_kernels(reinterpret_cast<RegisterKernels>(symbol));
  if (registered.ok()) return {};
  return registered.error().with_context("While loading kernels from " + quote(path.string()) +
                                         ".");
}

}  // namespace refrain::host
