#include "vad/device.hpp"

#include "vad/kernels.hpp"

#ifdef VAD_HAS_CUDA
#include "refrain/cuda/device.hpp"
#endif
#ifdef VAD_HAS_CUDA_KERNELS
#include "vad_kernels_image.hpp"
#endif

namespace vad {
namespace {

const refrain::DeviceOptions kChecked{.checks = true};

refrain::Result<refrain::Device> open_host() {
  const refrain::host::Device device(kChecked);
  REFRAIN_TRY(device.register_kernels(register_kernels));
  return refrain::Device(device);  // NOLINT: a handle to the same device
}

#ifdef VAD_HAS_CUDA
refrain::Result<refrain::Device> open_cuda() {
  const auto device = refrain::cuda::Device::open({}, kChecked);
  if (!device.ok()) return device.error();
#ifdef VAD_HAS_CUDA_KERNELS
  // The image is part of the program, so nobody has to own it.
  REFRAIN_TRY(device->add_image(refrain::SharedBytes(nullptr, vad_kernels_image())));
#endif
  return refrain::Device(*device);  // NOLINT: a handle to the same device
}
#else
refrain::Result<refrain::Device> open_cuda() {
  return refrain::Error(refrain::ErrorKind::driver_missing,
                        "This program was built without CUDA, so it has the host device only.");
}
#endif

}  // namespace

refrain::Result<refrain::Device> open_device(const std::string& name) {
  if (name == "host") return open_host();
  if (name == "cuda") return open_cuda();
  return refrain::Error(refrain::ErrorKind::invalid_argument,
                        "There is no device called \"" + name + "\"; there are host and cuda.");
}

}  // namespace vad
