// Kernels that the program has loaded by itself, beside the device.
#pragma once

#include <string>

#include "driver_api.hpp"
#include "gpu.hpp"

namespace refrain::test {

/// A program's own library of the test's kernels.
struct OwnLibrary {
  explicit OwnLibrary(const Gpu& gpu) {
    const cuda::Entrance entered = gpu.device->enter();
    const SharedBytes image = test_image();
    std::string text(reinterpret_cast<const char*>(image.data()), image.size());
    REQUIRE(api.cuLibraryLoadData(&handle, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr,
                                  0) == CUDA_SUCCESS);
  }
  OwnLibrary(const OwnLibrary&) = delete;
  OwnLibrary& operator=(const OwnLibrary&) = delete;
  ~OwnLibrary() { CHECK(api.cuLibraryUnload(handle) == CUDA_SUCCESS); }

  CUkernel kernel(const char* symbol) const {
    CUkernel found = nullptr;
    REQUIRE(api.cuLibraryGetKernel(&found, handle, symbol) == CUDA_SUCCESS);
    return found;
  }

  cuda::Driver driver = cuda::Driver::open({REFRAIN_SIMCUDA}).value();
  const cuda::DriverApi& api = driver.api();
  CUlibrary handle = nullptr;
};

}  // namespace refrain::test
