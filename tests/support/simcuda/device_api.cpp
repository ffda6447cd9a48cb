// What can be asked about the device.
#include <algorithm>
#include <cstring>

#include "simcuda/device.hpp"
#include "simcuda/driver.hpp"
#include "simcuda/export.hpp"
#include "simcuda/graph.hpp"

namespace sim {
namespace {

struct Attribute {
  CUdevice_attribute id;
  int value;
};

/// Those that are not here are 0: a feature that is not simulated, or a limit of one.
constexpr Attribute kAttributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kBlockThreads},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7FFFFFFF},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, kBlockShared},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 64 * 1024},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, kWarp},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 0x7FFFFFFF},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, kRegisters},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1'000'000},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, kMultiprocessors},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT},
    {CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1'000'000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 4096},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 32 * 1024 * 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, kMultiprocessorThreads},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 1},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, kComputeMajor},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, kComputeMinor},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, kMultiprocessorShared},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, kRegisters},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, kBlockSharedOptin},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, kMultiprocessorBlocks},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, kReservedShared},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 1},
};

/// Every function here checks the device's number, which is 0.
CUresult check(CUdevice device) { return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE; }

}  // namespace
}  // namespace sim

using namespace sim;

SIM_API CUresult CUDAAPI cuDeviceGetCount(int* count) {
  return call({__func__, Needs::initialised}, [&](Driver&) -> CUresult {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = 1;
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  return call({__func__, Needs::initialised}, [&](Driver&) -> CUresult {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (ordinal != 0) return CUDA_ERROR_INVALID_DEVICE;
    *device = 0;
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuDeviceGetName(char* name, int capacity, CUdevice device) {
  return call({__func__, Needs::initialised}, [&](Driver&) -> CUresult {
    if (name == nullptr || capacity <= 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult code = check(device); code != CUDA_SUCCESS) return code;
    const std::size_t length = std::min(sizeof kDeviceName, static_cast<std::size_t>(capacity)) - 1;
    std::memcpy(name, kDeviceName, length);
    name[length] = '\0';
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  return call({__func__, Needs::initialised}, [&](Driver&) -> CUresult {
    if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult code = check(device); code != CUDA_SUCCESS) return code;
    static_assert(sizeof uuid->bytes == 16);
    std::memcpy(uuid->bytes, "refrain simcuda ", sizeof uuid->bytes);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute,
                                              CUdevice device) {
  return call({__func__, Needs::initialised}, [&](Driver&) -> CUresult {
    const int id = raw(attribute);
    if (value == nullptr || id <= 0 || id >= CU_DEVICE_ATTRIBUTE_MAX) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (const CUresult code = check(device); code != CUDA_SUCCESS) return code;
    const auto* at = std::find_if(std::begin(kAttributes), std::end(kAttributes),
                                  [&](const Attribute& each) { return each.id == id; });
    *value = at == std::end(kAttributes) ? 0 : at->value;
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  return call({__func__, Needs::initialised}, [&](Driver& driver) -> CUresult {
    if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult code = check(device); code != CUDA_SUCCESS) return code;
    *bytes = driver.memory.total();
    return CUDA_SUCCESS;
  });
}
