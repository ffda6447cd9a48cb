// A shared object with kernels, as a program would be given with `--kernels`.
#include "refrain/host/kernel_registry.hpp"

extern "C" __attribute__((visibility("default"))) void refrain_register_kernels_v1(
    refrain::host::KernelRegistry& kernels) {
  using InPlace = refrain::Kernel<refrain::InOut<float>>;
  kernels.add<InPlace>("negate", [](std::span<float> y) {
    for (float& each : y) each = -each;
  });
  kernels.add<InPlace>("refuse", [](std::span<float>) -> refrain::Result<void> {
    return refrain::Error(refrain::ErrorKind::kernel_failed, "The object refuses.");
  });
}
