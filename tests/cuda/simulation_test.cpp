// What the simulation makes of misuse that no rule of the real driver covers: it must answer, and
// not corrupt the process that tests with it.
#include <doctest/doctest.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "simulated.hpp"

namespace refrain::cuda {

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
  const Simulated it;
  void* pinned = nullptr;
  REQUIRE(it.api.cuMemHostAlloc(&pinned, 16, 0) == CUDA_SUCCESS);
  it.control->hold();
  REQUIRE(it.api.cuMemsetD8Async(it.memory, 1, 16, it.stream) == CUDA_SUCCESS);
  std::vector<CUresult> freed(2, CUDA_SUCCESS);
  std::vector<std::thread> threads;
  for (CUresult& each : freed) {
    threads.emplace_back([&] {
      it.api.cuCtxSetCurrent(it.context);
      each = it.api.cuMemFreeHost(pinned);
    });
  }
  it.control->release();
  for (std::thread& thread : threads) thread.join();
  CHECK((freed[0] == CUDA_SUCCESS) != (freed[1] == CUDA_SUCCESS));
}

}  // namespace refrain::cuda
