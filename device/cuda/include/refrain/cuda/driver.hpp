// The CUDA driver's library, opened at run time: no binary of refrain needs libcuda or cudart, and
// a machine without them runs everything else. Nothing here shows a type of CUDA's.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "refrain/base/result.hpp"

namespace refrain::cuda {

struct DriverApi;

struct DriverOptions {
  /// The library to open. Empty: what the environment variable REFRAIN_CUDA_DRIVER names, else
  /// "libcuda.so.1" as the system finds it. A name without a slash is looked for where the system
  /// keeps libraries, and not in the current folder.
  std::filesystem::path library;
};

/// An opened and initialised CUDA driver with at least one device. A handle to something immutable:
/// cheap to copy, safe to share. The library stays loaded until the process ends.
class Driver {
 public:
  /// Opens the driver. Refuses, each time saying what was opened and why that one:
  /// `driver_missing` (no such library, or one that is no CUDA driver), `driver_stub` (the
  /// toolkit's library for linking), `driver_too_old` (older than CUDA 12.4), `no_gpu` (a driver
  /// that has no device), `device_refused` (it would not initialise).
  static Result<Driver> open(const DriverOptions& options = {});

  /// What was opened, as it was asked for.
  [[nodiscard]] const std::string& library() const noexcept;
  /// The newest CUDA version that the driver supports: major * 1000 + minor * 10.
  [[nodiscard]] int version() const noexcept;
  /// How many devices it has, at least one.
  [[nodiscard]] int device_count() const noexcept { return device_count_; }
  /// The name of device `ordinal`; refuses an ordinal that is not there.
  [[nodiscard]] Result<std::string> device_name(int ordinal) const;

  /// The functions, for refrain's own sources and tests.
  [[nodiscard]] const DriverApi& api() const noexcept { return *api_; }

 private:
  Driver(std::shared_ptr<const DriverApi> api, int device_count)
      : api_(std::move(api)), device_count_(device_count) {}

  std::shared_ptr<const DriverApi> api_;
  int device_count_ = 0;
};

}  // namespace refrain::cuda
