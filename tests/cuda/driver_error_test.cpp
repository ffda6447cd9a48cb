// The driver's codes as errors: named without a driver, and of the kind that says what to do.
#include "driver_error.hpp"

#include <doctest/doctest.h>

#include <string>

namespace refrain::cuda {
namespace {

// The numbers beside the names in driver_codes.inc are those of CUDA's own header.
#if CUDA_VERSION >= 13000
#define REFRAIN_CUDA_CODE(number, name, meaning) static_assert((name) == (number));
#include "driver_codes.inc"
#undef REFRAIN_CUDA_CODE
#endif

}  // namespace

TEST_CASE("Driver codes: an error names the call and the code, its number and what it means") {
  const Error error = driver_error(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "cuMemAlloc");
  CHECK(
      error.text() ==
      "The driver answered cuMemAlloc with 900 (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: the call is "
      "not permitted while a stream captures).");
}

TEST_CASE("Driver codes: a number that nobody knows is told as it is") {
  const Error error = driver_error(static_cast<CUresult>(998), "cuInit");
  CHECK(error.kind() == ErrorKind::device_refused);
  CHECK(error.text().find("998 (an unknown code") != std::string::npos);
}

TEST_CASE("Driver codes: success is no error, and every other code is one") {
  CHECK(check(CUDA_SUCCESS, "cuInit").ok());
  int codes = 0;
#define REFRAIN_CUDA_CODE(number, name, meaning)                                \
  if ((number) != 0) {                                                          \
    const auto result = check(static_cast<CUresult>(number), "cuInit");         \
    REQUIRE_FALSE(result.ok());                                                 \
    CHECK(result.error().text().find(#name ": " meaning) != std::string::npos); \
    CHECK(code_name(static_cast<CUresult>(number)) == #name);                   \
    ++codes;                                                                    \
  }
#include "driver_codes.inc"
#undef REFRAIN_CUDA_CODE
  CHECK(codes > 90);
}

TEST_CASE("Driver codes: those after which the context is lost poison, and no others do") {
  for (int number = 1; number < 1000; ++number) {
    const bool lost = number == 226 || number == 700 || number == 702 || number == 710 ||
                      number == 714 || number == 715 || number == 716 || number == 717 ||
                      number == 718 || number == 719 || number == 911;
    CAPTURE(number);
    const auto code = static_cast<CUresult>(number);
    CHECK(is_sticky(code) == lost);
    const ErrorKind expected = lost          ? ErrorKind::device_poisoned
                               : number == 2 ? ErrorKind::out_of_memory
                                             : ErrorKind::device_refused;
    CHECK(driver_error(code, "cuStreamQuery").kind() == expected);
  }
}

}  // namespace refrain::cuda
