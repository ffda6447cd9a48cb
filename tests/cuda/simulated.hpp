// The simulation opened, with its context current in this thread and a stream and memory of its
// own.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>

#include "driver_api.hpp"
#include "refrain/cuda/driver.hpp"
#include "simcuda/control.hpp"

namespace refrain::cuda {

struct Simulated {
  Simulated() {
    CUdevice device = 0;
    REQUIRE(control != nullptr);
    REQUIRE(api.cuDeviceGet(&device, 0) == CUDA_SUCCESS);
    REQUIRE(api.cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS);
    REQUIRE(api.cuCtxPushCurrent_v2(context) == CUDA_SUCCESS);
    REQUIRE(api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    REQUIRE(api.cuMemAlloc_v2(&memory, kBytes) == CUDA_SUCCESS);
    control->clear_journal();
  }
  Simulated(const Simulated&) = delete;
  Simulated& operator=(const Simulated&) = delete;
  ~Simulated() {
    control->release();
    control->clear_faults();
    CHECK(api.cuMemFree_v2(memory) == CUDA_SUCCESS);
    CHECK(api.cuStreamDestroy_v2(stream) == CUDA_SUCCESS);
    CHECK(api.cuCtxPopCurrent_v2(&context) == CUDA_SUCCESS);
    CHECK(api.cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS);
  }

  /// Sets the first byte of `memory`, on `stream`.
  [[nodiscard]] CUresult set(unsigned char value) const {
    return api.cuMemsetD8Async(memory, value, 1, stream);
  }
  /// The first byte of `memory`, read beside everything.
  [[nodiscard]] unsigned char first() const {
    unsigned char value = 0;
    REQUIRE(api.cuMemcpyDtoH_v2(&value, memory, 1) == CUDA_SUCCESS);
    return value;
  }
  void begin() const {
    REQUIRE(api.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) ==
            CUDA_SUCCESS);
  }
  /// Ends the capture, which must be valid; how many nodes it has.
  [[nodiscard]] std::size_t end() const {
    CUgraph graph = nullptr;
    REQUIRE(api.cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
    std::size_t nodes = 0;
    REQUIRE(api.cuGraphGetNodes(graph, nullptr, &nodes) == CUDA_SUCCESS);
    REQUIRE(api.cuGraphDestroy(graph) == CUDA_SUCCESS);
    return nodes;
  }

  static constexpr std::uint64_t kBytes = 1U << 20U;
  Driver driver = Driver::open({REFRAIN_SIMCUDA}).value();
  const DriverApi& api = driver.api();
  const sim::Control* control = sim::control(REFRAIN_SIMCUDA);
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
};

}  // namespace refrain::cuda
