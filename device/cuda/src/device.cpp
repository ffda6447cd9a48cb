#include "refrain/cuda/device.hpp"

#include <cstring>

#include "cuda_stream.hpp"
#include "make_backend.hpp"
#include "refrain/base/text.hpp"

namespace refrain::cuda {

Entrance::Entrance(std::shared_ptr<Context> context)
    : context_(std::move(context)),
      entered_(!InDriverCallback::here() &&
               context_->api().cuCtxPushCurrent_v2(context_->handle()) == CUDA_SUCCESS) {}

Entrance::~Entrance() {
  CUcontext popped = nullptr;
  if (entered_) context_->api().cuCtxPopCurrent_v2(&popped);
}

Result<Device> Device::open(const OpenOptions& options, DeviceOptions device) {
  const Result<Driver> driver = Driver::open(options.driver);
  if (!driver.ok()) return driver.error();
  auto context = options.context == nullptr
                     ? Context::primary(*driver, options.ordinal)
                     : Context::adopt(*driver, static_cast<CUcontext>(options.context));
  Result<Parts> parts = context.ok()
                            ? make_parts(*std::move(context), options.memory, device.checks)
                            : context.error();
  if (!parts.ok()) {
    return parts.error().with_context(
        options.context == nullptr
            ? "While opening CUDA device " + std::to_string(options.ordinal) + "."
            : std::string("While opening a CUDA device on a context of the program's."));
  }
  return Device(parts->backend, std::move(device), parts->context, parts->images);
}

Result<void> Device::health() const { return context_->alive(); }

Result<PinnedBytes> Device::pinned(std::uint64_t bytes) const {
  REFRAIN_TRY(context_->alive());
  auto made = context_->told(PinnedMemory::allocate(context_, bytes));
  if (!made.ok()) return std::move(made).error();
  const std::shared_ptr<PinnedMemory> owner = *std::move(made);
  std::memset(owner->data(), 0, bytes);
  return PinnedBytes(owner, owner->data());
}

Result<Stream> Device::adopt_stream(void* stream) const {
  return stream_over([&](Completion& completion) -> Result<std::unique_ptr<BackendStream>> {
    REFRAIN_TRY(context_->alive());
    auto adopted =
        context_->told(CudaStream::adopt(context_, completion, static_cast<CUstream>(stream)));
    if (!adopted.ok()) return std::move(adopted).error();
    return std::unique_ptr<BackendStream>(*std::move(adopted));
  });
}

Result<void> Device::add_image(SharedBytes image, std::uint32_t version) const {
  return images_->add(std::move(image), version);
}

Result<LoadedKernel> Device::load_own(void* kernel, KernelSignature signature, Where where) const {
  if (kernel == nullptr) {
    const Error error(ErrorKind::invalid_argument,
                      "Kernel " + quote(signature.name) + " is given as a CUkernel that is null.");
    core()->refused_by_device(error);
    return error;
  }
  signature.source =
      core()->wanted([&] { return images_->own(static_cast<CUkernel>(kernel), signature); });
  return load(std::move(signature), where);
}

}  // namespace refrain::cuda
