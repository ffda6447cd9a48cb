#include "refrain/cuda/device.hpp"

#include "make_backend.hpp"

namespace refrain::cuda {

Entrance::Entrance(std::shared_ptr<Context> context)
    : context_(std::move(context)),
      entered_(context_->api().cuCtxPushCurrent_v2(context_->handle()) == CUDA_SUCCESS) {}

Entrance::~Entrance() {
  CUcontext popped = nullptr;
  if (entered_) context_->api().cuCtxPopCurrent_v2(&popped);
}

Result<Device> Device::open(const OpenOptions& options, DeviceOptions device) {
  const Result<Driver> driver = Driver::open(options.driver);
  if (!driver.ok()) return driver.error();
  Result<Parts> parts = make_parts(*driver, options.ordinal);
  if (!parts.ok()) {
    return parts.error().with_context("While opening CUDA device " +
                                      std::to_string(options.ordinal) + ".");
  }
  return Device(parts->backend, std::move(device), parts->context, parts->images);
}

Result<void> Device::add_image(SharedBytes image, std::uint32_t version) const {
  return images_->add(std::move(image), version);
}

}  // namespace refrain::cuda
