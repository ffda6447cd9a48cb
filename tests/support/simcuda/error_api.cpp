// Starting the driver, its version, and the names of its codes: what works before everything else
// and after every error.
#include "simcuda/driver.hpp"
#include "simcuda/export.hpp"

namespace sim {
namespace {

struct CodeText {
  int number;
  const char* name;
  const char* meaning;
};

constexpr CodeText kCodes[] = {
#define REFRAIN_CUDA_CODE(number, name, meaning) {number, #name, meaning},
#include "driver_codes.inc"
#undef REFRAIN_CUDA_CODE
};

CUresult tell(CUresult code, const char* CodeText::*what, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *text = nullptr;
  for (const CodeText& each : kCodes) {
    if (each.number == static_cast<int>(code)) *text = each.*what;
  }
  return *text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace
}  // namespace sim

using namespace sim;

SIM_API CUresult CUDAAPI cuInit(unsigned flags) {
  return call({__func__, Needs::nothing}, [&](Driver& driver) -> CUresult {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    driver.initialised = true;
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuDriverGetVersion(int* version) {
  return call({__func__, Needs::nothing}, [&](Driver& driver) -> CUresult {
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = driver.version;
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuGetErrorName(CUresult error, const char** name) {
  return call({__func__, Needs::nothing},
              [&](Driver&) -> CUresult { return tell(error, &CodeText::name, name); });
}

SIM_API CUresult CUDAAPI cuGetErrorString(CUresult error, const char** text) {
  return call({__func__, Needs::nothing},
              [&](Driver&) -> CUresult { return tell(error, &CodeText::meaning, text); });
}
