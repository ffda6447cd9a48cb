#include "driver_error.hpp"

#include <string>

namespace refrain::cuda {
namespace {

struct CodeText {
  std::string_view name;
  std::string_view meaning;
};

CodeText text_of(CUresult code) noexcept {
  switch (static_cast<int>(code)) {
#define REFRAIN_CUDA_CODE(number, name, meaning) \
  case number:                                   \
    return {#name, meaning};
#include "driver_codes.inc"
#undef REFRAIN_CUDA_CODE
    default: return {"an unknown code", "not a code that this version knows"};
  }
}

ErrorKind kind_of(CUresult code) noexcept {
  if (code == CUDA_ERROR_OUT_OF_MEMORY) return ErrorKind::out_of_memory;
  return is_sticky(code) ? ErrorKind::device_poisoned : ErrorKind::device_refused;
}

}  // namespace

std::string_view code_name(CUresult code) noexcept { return text_of(code).name; }

bool is_sticky(CUresult code) noexcept {
  const int number = code;
  return number == 226 || number == 700 || number == 702 || number == 710 ||
         (number >= 714 && number <= 719) || number == 911;
}

Error driver_error(CUresult code, std::string_view call) {
  const auto [name, meaning] = text_of(code);
  return Error(kind_of(code), "The driver answered " + std::string(call) + " with " +
                                  std::to_string(static_cast<int>(code)) + " (" +
                                  std::string(name) + ": " + std::string(meaning) + ").");
}

Result<void> check(CUresult code, std::string_view call) {
  if (code == CUDA_SUCCESS) return {};
  return driver_error(code, call);
}

}  // namespace refrain::cuda
