// The driver as the timings use it: opened, the first device's primary context current, one stream
// to measure in, one to keep the GPU busy in, and the two kernels.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "driver_api.hpp"
#include "driver_error.hpp"
#include "refrain/cuda/driver.hpp"

namespace refrain::bench {

/// Throws `BadResult` for every code but CUDA_SUCCESS.
inline void must(CUresult code, std::string_view call) {
  if (code != CUDA_SUCCESS) cuda::check(code, call).value();
}

/// A handle of the driver's, destroyed by the function of that name.
template <class Handle, auto Destroy>
class Owned {
 public:
  Owned(const cuda::DriverApi& cu, Handle handle) : cu_(&cu), handle_(handle) {}
  Owned(Owned&& other) noexcept : cu_(other.cu_), handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&&) = delete;
  ~Owned() {
    // An error here is news of earlier work, which the next call that counts brings too.
    if (handle_ != nullptr) (cu_->*Destroy)(handle_);
  }
  [[nodiscard]] Handle get() const noexcept { return handle_; }

 private:
  const cuda::DriverApi* cu_;
  Handle handle_;
};

using Stream = Owned<CUstream, &cuda::DriverApi::cuStreamDestroy_v2>;
using Event = Owned<CUevent, &cuda::DriverApi::cuEventDestroy_v2>;
using Module = Owned<CUmodule, &cuda::DriverApi::cuModuleUnload>;
using Graph = Owned<CUgraph, &cuda::DriverApi::cuGraphDestroy>;
using Executable = Owned<CUgraphExec, &cuda::DriverApi::cuGraphExecDestroy>;

/// Ends the use of a device's primary context.
class PrimaryContext {
 public:
  /// Makes it current in this thread.
  PrimaryContext(const cuda::DriverApi& cu, CUdevice device);
  PrimaryContext(const PrimaryContext&) = delete;
  ~PrimaryContext();

 private:
  const cuda::DriverApi& cu_;
  CUdevice device_;
};

class Rig {
 public:
  /// Throws `BadResult` where the driver refuses anything.
  explicit Rig(cuda::Driver driver);

  const cuda::DriverApi& cu() const noexcept { return driver_.api(); }
  [[nodiscard]] const cuda::Driver& driver() const noexcept { return driver_; }
  [[nodiscard]] CUdevice device() const noexcept { return device_; }
  [[nodiscard]] bool simulated() const noexcept { return simulated_; }

  [[nodiscard]] CUstream stream() const noexcept { return stream_.get(); }
  [[nodiscard]] CUstream other_stream() const noexcept { return other_stream_.get(); }
  [[nodiscard]] CUfunction empty_kernel() const noexcept { return empty_; }

  void launch_empty(CUstream stream) const;
  /// Keeps the GPU busy for that long, in `stream`.
  void launch_spin(CUstream stream, std::chrono::nanoseconds time) const;
  void synchronize(CUstream stream) const;
  [[nodiscard]] Event event() const;

 private:
  [[nodiscard]] CUstream new_stream() const;
  [[nodiscard]] CUmodule new_module() const;
  [[nodiscard]] CUfunction function(const char* name) const;

  cuda::Driver driver_;
  CUdevice device_;
  bool simulated_;
  PrimaryContext context_;
  Stream stream_;
  Stream other_stream_;
  Module module_;
  CUfunction empty_;
  CUfunction spin_;
};

}  // namespace refrain::bench
