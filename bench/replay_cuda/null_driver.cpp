// A CUDA driver that does nothing and answers at once, so that what is left to measure is refrain.
// It gives out handles that are never looked at, and knows the parameters of one kernel. Found only
// by its path; it says in its device's name what it is.
#include <cstring>
#include <map>
#include <string>

#include "cuda_api.hpp"

namespace {

std::uintptr_t next_handle() {
  static std::uintptr_t last = 0x10000;
  return last += 0x10000;
}

CUresult nothing() { return CUDA_SUCCESS; }

/// Answers a new handle in its first argument.
CUresult handle(void** made) {
  *made = reinterpret_cast<void*>(next_handle());
  return CUDA_SUCCESS;
}

CUresult allocate(CUdeviceptr* address, std::size_t bytes) {
  *address = next_handle();
  for (std::size_t taken = 0x10000; taken < bytes; taken += 0x10000) next_handle();
  return CUDA_SUCCESS;
}

CUresult version(int* answer) {
  *answer = 12040;
  return CUDA_SUCCESS;
}
CUresult count(int* answer) {
  *answer = 1;
  return CUDA_SUCCESS;
}
CUresult name(char* text, int bytes, CUdevice) {
  std::strncpy(text, "null driver (not a GPU)", static_cast<std::size_t>(bytes));
  return CUDA_SUCCESS;
}
CUresult current(CUcontext* context) {
  *context = nullptr;
  return CUDA_SUCCESS;
}

/// update(y, n)
CUresult parameter(CUkernel, std::size_t index, std::size_t* offset, std::size_t* size) {
  if (index > 1) return CUDA_ERROR_INVALID_VALUE;
  *offset = index * 8;
  *size = index == 0 ? 8 : 4;
  return CUDA_SUCCESS;
}

void* find(const std::string& wanted) {
  static const std::map<std::string, void*> kKnown{
      {"cuDriverGetVersion", reinterpret_cast<void*>(version)},
      {"cuDeviceGetCount", reinterpret_cast<void*>(count)},
      {"cuDeviceGetName", reinterpret_cast<void*>(name)},
      {"cuCtxGetCurrent", reinterpret_cast<void*>(current)},
      {"cuDevicePrimaryCtxRetain", reinterpret_cast<void*>(handle)},
      {"cuStreamCreateWithPriority", reinterpret_cast<void*>(handle)},
      {"cuEventCreate", reinterpret_cast<void*>(handle)},
      {"cuLibraryLoadData", reinterpret_cast<void*>(handle)},
      {"cuLibraryGetKernel", reinterpret_cast<void*>(handle)},
      {"cuKernelGetFunction", reinterpret_cast<void*>(handle)},
      {"cuKernelGetParamInfo", reinterpret_cast<void*>(parameter)},
      {"cuMemAlloc", reinterpret_cast<void*>(allocate)},
      {"cuGraphCreate", reinterpret_cast<void*>(handle)},
      {"cuGraphAddKernelNode", reinterpret_cast<void*>(handle)},
      {"cuGraphInstantiateWithParams", reinterpret_cast<void*>(handle)},
  };
  const auto found = kKnown.find(wanted);
  return found != kKnown.end() ? found->second : reinterpret_cast<void*>(nothing);
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT CUresult cuDriverGetVersion(int* driverVersion) { return version(driverVersion); }  // NOLINT

// NOLINTNEXTLINE: its parameters have names of their own here
EXPORT CUresult cuGetProcAddress_v2(const char* wanted, void** function, int /*version*/,
                                    cuuint64_t /*flags*/, CUdriverProcAddressQueryResult* status) {
  *function = find(wanted);
  *status = CU_GET_PROC_ADDRESS_SUCCESS;
  return CUDA_SUCCESS;
}
