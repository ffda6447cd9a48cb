// What the simulation makes of misuse that no rule of the real driver covers: it must answer, and
// not corrupt the process that tests with it.
#include <doctest/doctest.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "driver_api.hpp"
#include "refrain/cuda/driver.hpp"
#include "simcuda/control.hpp"

namespace refrain::cuda {
namespace {

/// The simulation, with its context current in this thread.
struct Simulated {
  Simulated() {
    CUdevice device = 0;
    CUcontext context = nullptr;
    REQUIRE(api.cuDeviceGet(&device, 0) == CUDA_SUCCESS);
    REQUIRE(api.cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS);
    REQUIRE(api.cuCtxPushCurrent_v2(context) == CUDA_SUCCESS);
    REQUIRE(api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    REQUIRE(api.cuMemAlloc_v2(&memory, kBytes) == CUDA_SUCCESS);
  }
  Simulated(const Simulated&) = delete;
  Simulated& operator=(const Simulated&) = delete;
  ~Simulated() {
    CHECK(api.cuMemFree_v2(memory) == CUDA_SUCCESS);
    CHECK(api.cuStreamDestroy_v2(stream) == CUDA_SUCCESS);
    CUcontext context = nullptr;
    CHECK(api.cuCtxPopCurrent_v2(&context) == CUDA_SUCCESS);
    CHECK(api.cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS);
  }

  static constexpr std::uint64_t kBytes = 1U << 20U;
  Driver driver = Driver::open({REFRAIN_SIMCUDA}).value();
  const DriverApi& api = driver.api();
  const sim::Control* control = sim::control(REFRAIN_SIMCUDA);
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
};

}  // namespace

TEST_CASE("simulation: sizes that wrap around are refused at the call") {
  const Simulated it;
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 63U;
  CHECK(it.api.cuMemsetD32Async(it.memory, 1, (std::uint64_t{1} << 62U) + 4, it.stream) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(it.api.cuMemsetD2D32Async(it.memory, kHalf, 1, std::uint64_t{1} << 61U, 2, it.stream) ==
        CUDA_ERROR_INVALID_VALUE);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = it.memory;
  copy.dstDevice = it.memory;
  copy.srcPitch = copy.dstPitch = copy.WidthInBytes = kHalf;
  copy.Height = 2;
  CHECK(it.api.cuMemcpy2DAsync_v2(&copy, it.stream) == CUDA_ERROR_INVALID_VALUE);
  copy.srcPitch = copy.dstPitch = std::uint64_t{1} << 40U;
  copy.WidthInBytes = 1;
  copy.Height = (std::uint64_t{1} << 24U) + 1;
  CHECK(it.api.cuMemcpy2DAsync_v2(&copy, it.stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(it.api.cuStreamSynchronize(it.stream) == CUDA_SUCCESS);
}

TEST_CASE("simulation: pinned memory has an end, is freed once, and is not registered twice") {
  const Simulated it;
  void* pinned = nullptr;
  REQUIRE(it.api.cuMemHostAlloc(&pinned, 16, 0) == CUDA_SUCCESS);
  CHECK(it.api.cuMemcpyDtoHAsync_v2(pinned, it.memory, 17, it.stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(it.api.cuMemcpyDtoHAsync_v2(pinned, it.memory, 16, it.stream) == CUDA_SUCCESS);
  CHECK(it.api.cuMemFreeHost(pinned) == CUDA_SUCCESS);
  CHECK(it.api.cuMemFreeHost(pinned) == CUDA_ERROR_INVALID_VALUE);

  std::vector<std::byte> own(4096);
  REQUIRE(it.api.cuMemHostRegister_v2(own.data() + 1024, 1024, 0) == CUDA_SUCCESS);
  for (const std::size_t from : {std::size_t{0}, std::size_t{1500}}) {
    CHECK(it.api.cuMemHostRegister_v2(own.data() + from, 1100, 0) ==
          CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  }
  CHECK(it.api.cuMemHostRegister_v2(own.data() + 2048, 1024, 0) == CUDA_SUCCESS);
  CHECK(it.api.cuMemHostUnregister(own.data() + 2048) == CUDA_SUCCESS);
  CHECK(it.api.cuMemHostUnregister(own.data() + 1024) == CUDA_SUCCESS);
}

TEST_CASE(
    "simulation: two threads that free the same pinned memory with work in flight, one does") {
  Simulated it;
  REQUIRE(it.control != nullptr);
  CUcontext context = nullptr;
  REQUIRE(it.api.cuCtxGetCurrent(&context) == CUDA_SUCCESS);
  void* pinned = nullptr;
  REQUIRE(it.api.cuMemHostAlloc(&pinned, 16, 0) == CUDA_SUCCESS);
  it.control->hold();
  REQUIRE(it.api.cuMemsetD8Async(it.memory, 1, 16, it.stream) == CUDA_SUCCESS);
  std::vector<CUresult> freed(2, CUDA_SUCCESS);
  std::vector<std::thread> threads;
  for (CUresult& each : freed) {
    threads.emplace_back([&] {
      it.api.cuCtxSetCurrent(context);
      each = it.api.cuMemFreeHost(pinned);
    });
  }
  it.control->release();
  for (std::thread& thread : threads) thread.join();
  CHECK((freed[0] == CUDA_SUCCESS) != (freed[1] == CUDA_SUCCESS));
}

}  // namespace refrain::cuda
