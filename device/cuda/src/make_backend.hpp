// A CUDA device put together. Private to device/cuda and its tests.
#pragma once

#include <memory>

#include "context.hpp"
#include "kernel_images.hpp"
#include "refrain/cuda/device.hpp"

namespace refrain::cuda {

struct Parts {
  std::shared_ptr<Context> context;
  std::shared_ptr<KernelImages> images;
  std::shared_ptr<Backend> backend;
};

/// `checks` are those of `DeviceOptions`.
Result<Parts> make_parts(std::shared_ptr<Context> context, MemoryKind memory, bool checks);

}  // namespace refrain::cuda
