#include "rig.hpp"

#include <cstdint>
#include <thread>

#include "kernels.hpp"
#include "simcuda/control.hpp"

namespace refrain::bench {
namespace {

CUdevice first_device(const cuda::DriverApi& cu) {
  CUdevice device = 0;
  must(cu.cuDeviceGet(&device, 0), "cuDeviceGet");
  return device;
}

/// A simulation runs no PTX, so it is given the same two kernels as functions.
bool bodies_given(const std::string& library) {
  const sim::Control* control = sim::control(library.c_str());
  if (control == nullptr) return false;
  control->kernel_body(kEmptyKernel, [](const sim::Launch*) {});
  control->kernel_body(kSpinKernel, [](const sim::Launch* launch) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(launch->argument<std::uint64_t>(0)));
  });
  return true;
}

void launch(const cuda::DriverApi& cu, CUfunction function, CUstream stream, std::uint64_t value) {
  void* arguments[] = {&value};
  must(cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr),
       "cuLaunchKernel");
}

}  // namespace

PrimaryContext::PrimaryContext(const cuda::DriverApi& cu, CUdevice device)
    : cu_(cu), device_(device) {
  CUcontext context = nullptr;
  must(cu.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  must(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

PrimaryContext::~PrimaryContext() {
  cu_.cuCtxSetCurrent(nullptr);
  cu_.cuDevicePrimaryCtxRelease_v2(device_);
}

Rig::Rig(cuda::Driver driver)
    : driver_(std::move(driver)),
      device_(first_device(cu())),
      simulated_(bodies_given(driver_.library())),
      context_(cu(), device_),
      stream_(cu(), new_stream()),
      other_stream_(cu(), new_stream()),
      module_(cu(), new_module()),
      empty_(function(kEmptyKernel)),
      spin_(function(kSpinKernel)) {}

CUstream Rig::new_stream() const {
  CUstream stream = nullptr;
  must(cu().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  return stream;
}

CUmodule Rig::new_module() const {
  CUmodule module = nullptr;
  must(cu().cuModuleLoadData(&module, kKernels), "cuModuleLoadData");
  return module;
}

CUfunction Rig::function(const char* name) const {
  CUfunction function = nullptr;
  must(cu().cuModuleGetFunction(&function, module_.get(), name), "cuModuleGetFunction");
  return function;
}

void Rig::launch_empty(CUstream stream) const { launch(cu(), empty_, stream, 0); }

void Rig::launch_spin(CUstream stream, std::chrono::nanoseconds time) const {
  launch(cu(), spin_, stream, static_cast<std::uint64_t>(time.count()));
}

void Rig::synchronize(CUstream stream) const {
  must(cu().cuStreamSynchronize(stream), "cuStreamSynchronize");
}

Event Rig::event() const {
  CUevent event = nullptr;
  must(cu().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  return {cu(), event};
}

}  // namespace refrain::bench
