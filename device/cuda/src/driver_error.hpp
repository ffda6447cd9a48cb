// The one place where a driver's code becomes an Error. The names are kept here, because a stub
// leaves cuGetErrorName's answer untouched and an error must be printable without any driver.
#pragma once

#include <string_view>

#include "cuda_api.hpp"
#include "refrain/base/result.hpp"

namespace refrain::cuda {

/// "CUDA_ERROR_OUT_OF_MEMORY", or "an unknown code".
std::string_view code_name(CUresult code) noexcept;

/// Whether `code` says that the context is lost: news of earlier work, whatever call brings it.
/// Source: the texts of cuda.h ("any further CUDA work will return the same error"); 710 too, whose
/// text says that the context's memory is invalid.
bool is_sticky(CUresult code) noexcept;

/// The error for a `call` that answered `code`, which is not CUDA_SUCCESS. Its kind is
/// `out_of_memory`, `device_poisoned` for a sticky code, else `device_refused`.
Error driver_error(CUresult code, std::string_view call);

/// `driver_error` unless `code` is CUDA_SUCCESS.
Result<void> check(CUresult code, std::string_view call);

}  // namespace refrain::cuda
