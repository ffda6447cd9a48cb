// Memory in the order of a stream, and the pools that it comes from.
#include <doctest/doctest.h>

#include "fixture.hpp"

using namespace conformance;

namespace {

/// A pool of the device, destroyed with the case.
struct Pool {
  CUmemoryPool handle = nullptr;
  explicit Pool(CUdevice device) {
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    REQUIRE_OK(api().cuMemPoolCreate(&handle, &properties));
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    if (handle != nullptr) api().cuMemPoolDestroy(handle);
  }
};

cuuint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which) {
  cuuint64_t value = 0;
  REQUIRE_OK(api().cuMemPoolGetAttribute(pool, which, &value));
  return value;
}

bool has_pools(CUdevice device) {
  return device_attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) == 1;
}

constexpr const char* kNoPools = "the device has no memory pools";

}  // namespace

TEST_CASE_FIXTURE(Primary,
                  "MEM-50: memory allocated in a stream can be used by the work after it [H]") {
  if (!has_pools(device)) SKIP_CASE(kNoPools);
  Stream stream;
  Pinned copy;
  const CUfunction write = kernel("write_word");
  CUdeviceptr address = 0;
  REQUIRE_OK(api.cuMemAllocAsync(&address, 256, stream));
  CHECK(address != 0);
  CHECK(address % 256 == 0);
  REQUIRE_OK(launch(write, stream, address, std::uint32_t{50}));
  REQUIRE_OK(api.cuMemcpyDtoHAsync_v2(copy.get(), address, 4, stream));
  CHECK_CODE(api.cuMemFreeAsync(address, stream), CUDA_SUCCESS);
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(copy[0] == 50);
}

TEST_CASE_FIXTURE(Primary, "MEM-51: memory of a stream may be freed without one [H]") {
  if (!has_pools(device)) SKIP_CASE(kNoPools);
  Stream stream;
  CUdeviceptr address = 0;
  REQUIRE_OK(api.cuMemAllocAsync(&address, 256, stream));
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK_CODE(api.cuMemFree_v2(address), CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary, "MEM-52: memory from cuMemAlloc may be freed in a stream [G]") {
  if (!has_pools(device)) SKIP_CASE(kNoPools);
  Stream stream;
  CUdeviceptr address = 0;
  REQUIRE_OK(api.cuMemAlloc_v2(&address, 256));
  CHECK_CODE(api.cuMemFreeAsync(address, stream), CUDA_SUCCESS);
  CHECK_CODE(api.cuStreamSynchronize(stream), CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary, "MEM-53: the current pool is the default one until another is set [H]") {
  if (!has_pools(device)) SKIP_CASE(kNoPools);
  CUmemoryPool standard = nullptr;
  CUmemoryPool current = nullptr;
  REQUIRE_OK(api.cuDeviceGetDefaultMemPool(&standard, device));
  REQUIRE_OK(api.cuDeviceGetMemPool(&current, device));
  CHECK(current == standard);
  Pool pool(device);
  CHECK_CODE(api.cuDeviceSetMemPool(device, pool.handle), CUDA_SUCCESS);
  REQUIRE_OK(api.cuDeviceGetMemPool(&current, device));
  CHECK(current == pool.handle);
  CHECK_CODE(api.cuDeviceSetMemPool(device, standard), CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary,
                  "MEM-54: destroying the current pool makes the default one current [H]") {
  if (!has_pools(device)) SKIP_CASE(kNoPools);
  CUmemoryPool standard = nullptr;
  REQUIRE_OK(api.cuDeviceGetDefaultMemPool(&standard, device));
  {
    Pool pool(device);
    REQUIRE_OK(api.cuDeviceSetMemPool(device, pool.handle));
  }
  CUmemoryPool current = nullptr;
  REQUIRE_OK(api.cuDeviceGetMemPool(&current, device));
  CHECK(current == standard);
}

TEST_CASE_FIXTURE(Primary,
                  "MEM-55: a pool releases everything unless its threshold is raised [H]") {
  if (!has_pools(device)) SKIP_CASE(kNoPools);
  Pool pool(device);
  CHECK(attribute(pool.handle, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == 0);
  cuuint64_t threshold = cuuint64_t{1} << 30U;
  CHECK_CODE(api.cuMemPoolSetAttribute(pool.handle, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
             CUDA_SUCCESS);
  CHECK(attribute(pool.handle, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == threshold);
}

TEST_CASE_FIXTURE(Primary, "MEM-56: a pool counts what is used of it and what it holds [H]") {
  if (!has_pools(device)) SKIP_CASE(kNoPools);
  Stream stream;
  Pool pool(device);
  CHECK(attribute(pool.handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
  CUdeviceptr address = 0;
  REQUIRE_OK(api.cuMemAllocFromPoolAsync(&address, 4096, pool.handle, stream));
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  const cuuint64_t used = attribute(pool.handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
  CHECK(used >= 4096);
  CHECK(attribute(pool.handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= used);
  REQUIRE_OK(api.cuMemFreeAsync(address, stream));
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK(attribute(pool.handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
  CHECK(attribute(pool.handle, CU_MEMPOOL_ATTR_USED_MEM_HIGH) >= 4096);
}

TEST_CASE_FIXTURE(Primary, "MEM-57: a trim leaves what is in use [H]") {
  if (!has_pools(device)) SKIP_CASE(kNoPools);
  Stream stream;
  Pool pool(device);
  CUdeviceptr address = 0;
  REQUIRE_OK(api.cuMemAllocFromPoolAsync(&address, 4, pool.handle, stream));
  REQUIRE_OK(api.cuMemsetD32Async(address, 57, 1, stream));
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  CHECK_CODE(api.cuMemPoolTrimTo(pool.handle, 0), CUDA_SUCCESS);
  std::uint32_t value = 0;
  REQUIRE_OK(api.cuMemcpyDtoH_v2(&value, address, 4));
  CHECK(value == 57);
  REQUIRE_OK(api.cuMemFreeAsync(address, stream));
}

TEST_CASE_FIXTURE(Primary, "MEM-58: a destroyed pool's memory lives until it is freed [H]") {
  if (!has_pools(device)) SKIP_CASE(kNoPools);
  Stream stream;
  CUdeviceptr address = 0;
  {
    Pool pool(device);
    REQUIRE_OK(api.cuMemAllocFromPoolAsync(&address, 4, pool.handle, stream));
  }
  REQUIRE_OK(api.cuMemsetD32Async(address, 58, 1, stream));
  REQUIRE_OK(api.cuStreamSynchronize(stream));
  std::uint32_t value = 0;
  REQUIRE_OK(api.cuMemcpyDtoH_v2(&value, address, 4));
  CHECK(value == 58);
  CHECK_CODE(api.cuMemFreeAsync(address, stream), CUDA_SUCCESS);
  CHECK_CODE(api.cuStreamSynchronize(stream), CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary, "MEM-59: the device may be given access to its own pool [H]") {
  if (!has_pools(device)) SKIP_CASE(kNoPools);
  Pool pool(device);
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CHECK_CODE(api.cuMemPoolSetAccess(pool.handle, &access, 1), CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary, "MEM-60: what odd calls on stream memory and pools answer [?]") {
  if (!has_pools(device)) SKIP_CASE(kNoPools);
  Stream stream;
  CUdeviceptr address = 0;
  const CUresult code = api.cuMemAllocAsync(&address, 0, stream);
  observe("cuMemAllocAsync of 0 bytes", code);
  if (code == CUDA_SUCCESS && address != 0) api.cuMemFreeAsync(address, stream);
  observe("cuMemFreeAsync of null", api.cuMemFreeAsync(0, stream));
  CUmemoryPool standard = nullptr;
  REQUIRE_OK(api.cuDeviceGetDefaultMemPool(&standard, device));
  observe("destroy of the default pool", api.cuMemPoolDestroy(standard));
}
