// Plain device memory and pinned host memory.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "simcuda/capture.hpp"
#include "simcuda/export.hpp"
#include "simcuda/free_memory.hpp"
#include "simcuda/graph_memory.hpp"

namespace sim {

void free_after(Driver& driver, std::vector<std::shared_ptr<Op>> before, std::uint64_t address) {
  driver.memory.block(address)->free_issued = true;
  std::erase_if(before, [](const auto& op) { return op == nullptr || op->done; });
  if (before.empty()) {
    driver.memory.free(address);
    return;
  }
  // Also after a sticky error, so that the books stay right.
  driver.queue.add(
      driver, Driver::current(), std::move(before),
      [&driver, address] {
        const std::lock_guard lock(driver.mutex);
        driver.memory.free(address);
        return CUDA_SUCCESS;
      },
      true);
}

namespace {

/// Host memory of the driver's own, which is pinned from its birth.
CUresult allocate_host(Driver& driver, void** address, std::size_t bytes, unsigned flags) {
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  constexpr unsigned kKnown =
      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if ((flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  void* made = nullptr;
  if (posix_memalign(&made, 4096, bytes) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  driver.memory.pin(made, bytes, false, flags, Driver::current());
  *address = made;
  return CUDA_SUCCESS;
}

/// Writes what one attribute is of `address`; false when it is not known there.
bool tell(Driver& driver, CUpointer_attribute attribute, std::uint64_t address, void* to) {
  const auto* block = driver.memory.find(address);
  const auto* pinned = driver.memory.pinned(address);
  if (block == nullptr && pinned == nullptr) return false;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext*>(to) = handle_of<CUcontext>(driver.primary);
      return true;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(to) = block != nullptr ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
      return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<std::uint64_t*>(to) = address;
      return true;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (block != nullptr) return false;
      *static_cast<std::uint64_t*>(to) = address;
      return true;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      if (block == nullptr) return false;
      *static_cast<std::uint64_t*>(to) = block->second.id;
      return true;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *static_cast<unsigned char*>(to) = 0; return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *static_cast<int*>(to) = 0; return true;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<std::uint64_t*>(to) = block != nullptr ? block->first : pinned->first;
      return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<std::size_t*>(to) =
          block != nullptr ? block->second.bytes : pinned->second.bytes;
      return true;
    case CU_POINTER_ATTRIBUTE_MAPPED: *static_cast<unsigned char*>(to) = 1; return true;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      *static_cast<CUmemoryPool*>(to) =
          handle_of<CUmemoryPool>(block != nullptr ? block->second.pool : nullptr);
      return true;
    default: return false;
  }
}

/// How many bytes an attribute's value has; 0 for one that is not simulated.
std::size_t size_of(CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return 8;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return 4;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_MAPPED: return 1;
    default: return 0;
  }
}

}  // namespace
}  // namespace sim

using namespace sim;

SIM_API CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr* dptr, size_t bytesize) {
  return call({__func__}, [&](Driver& driver) -> CUresult {
    if (dptr == nullptr || bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult code = potentially_unsafe(driver); code != CUDA_SUCCESS) return code;
    const std::uint64_t address = driver.memory.allocate(bytesize);
    if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    driver.memory.block(address)->context = &Driver::current();
    *dptr = address;
    return CUDA_SUCCESS;
  });
}

// A real driver may wait for the whole device here. The simulation lets the memory go when all work
// that was issued before has ended, and does not wait: whoever leans on the wait is caught by the
// bytes that are still in use, whoever leans on its absence by a real driver.
SIM_API CUresult CUDAAPI cuMemFree_v2(CUdeviceptr dptr) {
  return call({__func__, dptr}, [&](Driver& driver) -> CUresult {
    if (const CUresult code = potentially_unsafe(driver); code != CUDA_SUCCESS) return code;
    if (dptr == 0) return CUDA_SUCCESS;
    if (const auto allocation = graph_allocation(dptr)) {
      if (allocation->itself == nullptr) return CUDA_ERROR_INVALID_VALUE;
      Context& context = Driver::current();
      issue_free(*allocation);
      const auto op = driver.queue.add(driver, context, driver.queue.pending(context),
                                       [allocation] { return run_free(*allocation); });
      return wait_for(driver, context, op);
    }
    const Memory::Block* block = driver.memory.block(dptr);
    if (block == nullptr || block->free_issued) return CUDA_ERROR_INVALID_VALUE;
    free_after(driver, driver.queue.pending(Driver::current()), dptr);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuMemGetInfo_v2(size_t* free, size_t* total) {
  return call({__func__}, [&](Driver& driver) -> CUresult {
    if (free == nullptr || total == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *free = driver.memory.total() - driver.memory.in_use();
    *total = driver.memory.total();
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuMemGetAddressRange_v2(CUdeviceptr* pbase, size_t* psize,
                                                 CUdeviceptr dptr) {
  return call({__func__, dptr}, [&](Driver& driver) -> CUresult {
    const auto* block = driver.memory.find(dptr);
    if (block == nullptr) return CUDA_ERROR_NOT_FOUND;
    if (pbase != nullptr) *pbase = block->first;
    if (psize != nullptr) *psize = block->second.bytes;
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuMemAllocHost_v2(void** pp, size_t bytesize) {
  return call({__func__}, [&](Driver& driver) { return allocate_host(driver, pp, bytesize, 0); });
}

SIM_API CUresult CUDAAPI cuMemHostAlloc(void** pp, size_t bytesize, unsigned int Flags) {
  return call({__func__},
              [&](Driver& driver) { return allocate_host(driver, pp, bytesize, Flags); });
}

SIM_API CUresult CUDAAPI cuMemFreeHost(void* p) {
  return call({__func__, p}, [&](Driver& driver) -> CUresult {
    const auto* pinned = driver.memory.pinned(reinterpret_cast<std::uint64_t>(p));
    const bool whole = pinned != nullptr && pinned->first == reinterpret_cast<std::uint64_t>(p);
    if (!whole || pinned->second.registered || pinned->second.free_issued)
      return CUDA_ERROR_INVALID_VALUE;
    // Noted before the wait, which lets go of the mutex, so that a second free is refused.
    driver.memory.about_to_unpin(reinterpret_cast<std::uint64_t>(p));
    static_cast<void>(wait_for_all(driver, Driver::current()));  // work in flight may use it
    driver.memory.unpin(p);
    std::free(p);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuMemHostRegister_v2(void* p, size_t bytesize, unsigned int Flags) {
  return call({__func__, p}, [&](Driver& driver) -> CUresult {
    if (p == nullptr || bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
    if (driver.memory.overlaps_pinned(reinterpret_cast<std::uint64_t>(p), bytesize)) {
      return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
    driver.memory.pin(p, bytesize, true, Flags, Driver::current());
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuMemHostUnregister(void* p) {
  return call({__func__, p}, [&](Driver& driver) -> CUresult {
    const auto* pinned = driver.memory.pinned(reinterpret_cast<std::uint64_t>(p));
    const bool whole = pinned != nullptr && pinned->first == reinterpret_cast<std::uint64_t>(p);
    if (!whole || !pinned->second.registered) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    driver.memory.unpin(p);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuMemHostGetDevicePointer_v2(CUdeviceptr* pdptr, void* p,
                                                      unsigned int Flags) {
  return call({__func__, p}, [&](Driver& driver) -> CUresult {
    const auto address = reinterpret_cast<std::uint64_t>(p);
    if (pdptr == nullptr || Flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (driver.memory.pinned(address) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pdptr = address;
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuPointerGetAttribute(void* data, CUpointer_attribute attribute,
                                               CUdeviceptr ptr) {
  return call({__func__, ptr}, [&](Driver& driver) -> CUresult {
    if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (size_of(attribute) == 0) return kUnsettled;
    return tell(driver, attribute, ptr, data) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

SIM_API CUresult CUDAAPI cuPointerGetAttributes(unsigned int numAttributes,
                                                CUpointer_attribute* attributes, void** data,
                                                CUdeviceptr ptr) {
  return call({__func__, ptr}, [&](Driver& driver) -> CUresult {
    if (numAttributes == 0 || attributes == nullptr || data == nullptr) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    for (unsigned i = 0; i < numAttributes; ++i) {
      const std::size_t bytes = size_of(attributes[i]);
      if (bytes == 0) return kUnsettled;
      if (!tell(driver, attributes[i], ptr, data[i])) std::memset(data[i], 0, bytes);
    }
    return CUDA_SUCCESS;
  });
}
