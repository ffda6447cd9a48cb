// Libraries that call themselves the CUDA driver and are none that can be used. One source, built
// once for each way to be so:
//
//   FAKE_VERSION_ANSWER   what cuDriverGetVersion answers
//   FAKE_VERSION          and writes, when it answers 0
//   FAKE_ANSWER           what every other function answers
//   FAKE_LACKS            a name that cuGetProcAddress does not find
#include <cstring>

#include "cuda_api.hpp"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr auto kAnswer = static_cast<CUresult>(FAKE_ANSWER);

// What is called before a driver is refused; of all others only the address is looked at.
CUresult init(unsigned /*flags*/) { return kAnswer; }
CUresult device_count(int* /*count*/) { return kAnswer; }

}  // namespace

EXPORT CUresult cuDriverGetVersion(int* version) {
  if (FAKE_VERSION_ANSWER == 0) *version = FAKE_VERSION;
  return static_cast<CUresult>(FAKE_VERSION_ANSWER);
}

EXPORT CUresult cuGetProcAddress_v2(const char* name, void** function, int /*version*/,
                                    cuuint64_t /*flags*/, CUdriverProcAddressQueryResult* status) {
  const bool lacks = std::strcmp(name, FAKE_LACKS) == 0;
  *function = std::strcmp(name, "cuDeviceGetCount") == 0 ? reinterpret_cast<void*>(device_count)
                                                         : reinterpret_cast<void*>(init);
  if (lacks) *function = nullptr;
  *status = lacks ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND : CU_GET_PROC_ADDRESS_SUCCESS;
  return CUDA_SUCCESS;
}
