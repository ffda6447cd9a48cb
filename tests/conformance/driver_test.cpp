// The driver as a library: how its functions are found, how it starts, what it says of its codes.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "fixture.hpp"

using namespace conformance;

TEST_CASE("DRV-04: cuInit takes no flags and answers 1 for any [X]") {
  CHECK_CODE(api().cuInit(1), CUDA_ERROR_INVALID_VALUE);
  CHECK_CODE(api().cuInit(0), CUDA_SUCCESS);
}
