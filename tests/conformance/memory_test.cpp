// Memory: what is given and taken back, what a pointer says of itself, and page-locked memory.
#include <doctest/doctest.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "fixture.hpp"

using namespace conformance;

namespace {

constexpr std::size_t kPage = 65536;

/// A page-aligned piece of ordinary host memory.
struct HostPages {
  std::unique_ptr<void, void (*)(void*)> memory{std::aligned_alloc(kPage, kPage), std::free};
  [[nodiscard]] void* get() const { return memory.get(); }
};

unsigned memory_type(CUdeviceptr address) {
  unsigned type = 0;
  REQUIRE_OK(api().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
  return type;
}

CUdeviceptr as_address(const void* host) { return reinterpret_cast<CUdeviceptr>(host); }

}  // namespace

TEST_CASE_FIXTURE(Primary, "MEM-01: an allocation of nothing is refused with 1 [H]") {
  CUdeviceptr address = 0;
  CHECK_CODE(api.cuMemAlloc_v2(&address, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Primary, "MEM-02: every allocation begins at a multiple of 256 [G]") {
  std::vector<CUdeviceptr> addresses;
  for (const std::size_t bytes : {1U, 3U, 255U, 257U, 4096U, 100001U}) {
    CUdeviceptr address = 0;
    REQUIRE_OK(api.cuMemAlloc_v2(&address, bytes));
    CHECK(address % 256 == 0);
    addresses.push_back(address);
  }
  for (const CUdeviceptr address : addresses) CHECK_CODE(api.cuMemFree_v2(address), CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary, "MEM-03: freeing null does nothing [P]") {
  CHECK_CODE(api.cuMemFree_v2(0), CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary, "MEM-04: freeing twice is refused with 1 and breaks nothing [N]") {
  Memory other;
  CUdeviceptr address = 0;
  REQUIRE_OK(api.cuMemAlloc_v2(&address, 64));
  REQUIRE_OK(api.cuMemFree_v2(address));
  CHECK_CODE(api.cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);
  CHECK(other.word() == 0);
}

TEST_CASE_FIXTURE(Primary, "MEM-05: freeing what was not allocated here is refused with 1 [N]") {
  int local = 0;
  CHECK_CODE(api.cuMemFree_v2(as_address(&local)), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Primary,
                  "MEM-06: freeing an address inside an allocation is refused with 1 [H]") {
  Memory memory(64);
  CHECK_CODE(api.cuMemFree_v2(memory.get() + 64), CUDA_ERROR_INVALID_VALUE);
  CHECK(memory.word() == 0);
}

TEST_CASE_FIXTURE(Primary, "MEM-07: an address inside an allocation knows its range [H]") {
  Memory memory(1000);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  CHECK_CODE(api.cuMemGetAddressRange_v2(&base, &bytes, memory.get() + 1234), CUDA_SUCCESS);
  CHECK(base == memory.get());
  CHECK(bytes >= 4000);
  observe("size of an allocation of 4000 bytes", bytes);
  CHECK_CODE(api.cuMemGetAddressRange_v2(nullptr, &bytes, memory), CUDA_SUCCESS);
  CHECK_CODE(api.cuMemGetAddressRange_v2(&base, nullptr, memory), CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary, "MEM-08: an address of nothing has no range [H]") {
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  const CUresult code = api.cuMemGetAddressRange_v2(&base, &bytes, 16);
  const bool refused = code == CUDA_ERROR_NOT_FOUND || code == CUDA_ERROR_INVALID_VALUE;
  CHECK(refused);
  observe("code", code);
}

TEST_CASE_FIXTURE(Primary, "MEM-09: device memory says what it is and whose [H]") {
  Memory memory(4);
  CHECK(memory_type(memory) == CU_MEMORYTYPE_DEVICE);
  CUcontext of_memory = nullptr;
  CHECK_CODE(api.cuPointerGetAttribute(&of_memory, CU_POINTER_ATTRIBUTE_CONTEXT, memory.get() + 8),
             CUDA_SUCCESS);
  CHECK(of_memory == context);
  int ordinal = -1;
  CHECK_CODE(api.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory),
             CUDA_SUCCESS);
  CHECK(ordinal == 0);
  CUdeviceptr there = 0;
  CHECK_CODE(api.cuPointerGetAttribute(&there, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, memory),
             CUDA_SUCCESS);
  CHECK(there == memory.get());
  void* host = nullptr;
  CHECK_CODE(api.cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, memory),
             CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(
    Primary, "MEM-10: a pointer that the driver does not know is refused one by one with 1 [H]") {
  int local = 0;
  unsigned type = 0;
  CHECK_CODE(api.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, as_address(&local)),
             CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Primary,
                  "MEM-11: asked for several attributes an unknown pointer has none of them [H]") {
  int local = 0;
  unsigned type = 99;
  CUcontext of_pointer = context;
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                      CU_POINTER_ATTRIBUTE_CONTEXT};
  void* data[] = {&type, &of_pointer};
  CHECK_CODE(api.cuPointerGetAttributes(2, attributes, data, as_address(&local)), CUDA_SUCCESS);
  CHECK(type == 0);
  CHECK(of_pointer == nullptr);
}

TEST_CASE_FIXTURE(Primary,
                  "MEM-12: several attributes at once are those asked for one by one [H]") {
  Memory memory(8);
  unsigned type = 0;
  CUdeviceptr start = 0;
  std::size_t bytes = 0;
  unsigned long long id = 0;
  CUpointer_attribute attributes[] = {
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
      CU_POINTER_ATTRIBUTE_RANGE_SIZE, CU_POINTER_ATTRIBUTE_BUFFER_ID};
  void* data[] = {&type, &start, &bytes, &id};
  REQUIRE_OK(api.cuPointerGetAttributes(4, attributes, data, memory.get() + 4));
  CHECK(type == CU_MEMORYTYPE_DEVICE);
  CHECK(start == memory.get());
  observe("size of the range of 32 bytes", bytes);
  unsigned long long alone = 0;
  REQUIRE_OK(api.cuPointerGetAttribute(&alone, CU_POINTER_ATTRIBUTE_BUFFER_ID, memory));
  CHECK(id == alone);
}

TEST_CASE_FIXTURE(Primary, "MEM-13: an allocation's id is not used again at the same address [H]") {
  unsigned long long ids[2] = {0, 0};
  for (auto& id : ids) {
    Memory memory;
    REQUIRE_OK(api.cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, memory));
  }
  CHECK(ids[0] != ids[1]);
}

TEST_CASE_FIXTURE(
    Primary, "MEM-14: free memory is at most all memory and less after a large allocation [H]") {
  std::size_t before = 0;
  std::size_t total = 0;
  REQUIRE_OK(api.cuMemGetInfo_v2(&before, &total));
  CHECK(before <= total);
  CUdeviceptr address = 0;
  REQUIRE_OK(api.cuMemAlloc_v2(&address, std::size_t{64} << 20U));
  std::size_t after = 0;
  REQUIRE_OK(api.cuMemGetInfo_v2(&after, &total));
  CHECK(after < before);
  CHECK_CODE(api.cuMemFree_v2(address), CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary,
                  "MEM-15: more memory than there is is refused with 2 and all goes on [H]") {
  std::size_t total = 0;
  REQUIRE_OK(api.cuDeviceTotalMem_v2(&total, device));
  CUdeviceptr address = 0;
  CHECK_CODE(api.cuMemAlloc_v2(&address, total * 2), CUDA_ERROR_OUT_OF_MEMORY);
  Memory memory;
  REQUIRE_OK(launch(kernel("write_word"), nullptr, memory.get(), std::uint32_t{15}));
  CHECK(memory.word() == 15);
}

TEST_CASE_FIXTURE(Primary,
                  "MEM-16: page-locked memory is the host's and the device reaches it [H]") {
  Pinned pinned(2);
  CHECK(memory_type(as_address(pinned)) == CU_MEMORYTYPE_HOST);
  REQUIRE_OK(launch(kernel("write_word"), nullptr, pinned.address(), std::uint32_t{16}));
  REQUIRE_OK(api.cuCtxSynchronize());
  CHECK(pinned[0] == 16);
  observe("one address for both", pinned.address() == as_address(pinned));
}

TEST_CASE_FIXTURE(Primary, "MEM-17: the device's address of host memory takes no flags [H]") {
  Pinned pinned;
  CUdeviceptr address = 0;
  CHECK_CODE(api.cuMemHostGetDevicePointer_v2(&address, pinned.get(), 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Primary,
                  "MEM-18: cuMemAllocHost gives memory that the host writes and copies read [H]") {
  void* host = nullptr;
  REQUIRE_OK(api.cuMemAllocHost_v2(&host, 4));
  *static_cast<std::uint32_t*>(host) = 18;
  Memory memory;
  CHECK_CODE(api.cuMemcpyHtoD_v2(memory, host, 4), CUDA_SUCCESS);
  CHECK(memory.word() == 18);
  CHECK_CODE(api.cuMemFreeHost(host), CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary, "MEM-19: registering the same memory twice is refused with 712 [H]") {
  HostPages pages;
  REQUIRE_OK(api.cuMemHostRegister_v2(pages.get(), kPage, CU_MEMHOSTREGISTER_DEVICEMAP));
  CHECK_CODE(api.cuMemHostRegister_v2(pages.get(), kPage, CU_MEMHOSTREGISTER_DEVICEMAP),
             CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  CHECK_CODE(api.cuMemHostUnregister(pages.get()), CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary, "MEM-20: unregistering what is not registered is refused with 713 [H]") {
  HostPages pages;
  CHECK_CODE(api.cuMemHostUnregister(pages.get()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

TEST_CASE_FIXTURE(Primary,
                  "MEM-21: the device reaches registered memory while it is registered [H]") {
  HostPages pages;
  auto* words = static_cast<std::uint32_t*>(pages.get());
  words[0] = 0;
  REQUIRE_OK(api.cuMemHostRegister_v2(pages.get(), kPage, CU_MEMHOSTREGISTER_DEVICEMAP));
  CUdeviceptr address = 0;
  REQUIRE_OK(api.cuMemHostGetDevicePointer_v2(&address, pages.get(), 0));
  REQUIRE_OK(launch(kernel("write_word"), nullptr, address, std::uint32_t{21}));
  REQUIRE_OK(api.cuCtxSynchronize());
  CHECK(words[0] == 21);
  CHECK_CODE(api.cuMemHostUnregister(pages.get()), CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(
    Primary, "MEM-22: what freeing foreign host memory and an empty page-locked piece answer [?]") {
  int local = 0;
  observe("cuMemFreeHost of a variable", api.cuMemFreeHost(&local));
  observe("cuMemFreeHost of null", api.cuMemFreeHost(nullptr));
  void* host = nullptr;
  const CUresult code = api.cuMemHostAlloc(&host, 0, 0);
  observe("cuMemHostAlloc of 0 bytes", code);
  if (code == CUDA_SUCCESS && host != nullptr) api.cuMemFreeHost(host);
}
