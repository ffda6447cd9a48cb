// Stream-ordered memory and the pools that it comes from. An allocation has its address at once,
// and its bytes may be used from when the stream has come to it until the stream has come to its
// free.
#include <algorithm>

#include "simcuda/capture.hpp"
#include "simcuda/export.hpp"
#include "simcuda/free_memory.hpp"
#include "simcuda/graph_memory.hpp"

namespace sim {
namespace {

Pool& default_pool(Driver& driver) {
  if (driver.default_pool == nullptr) {
    driver.default_pool = make<Pool>();
    driver.current_pool = driver.default_pool;
  }
  return *driver.default_pool;
}

Pool& current_pool(Driver& driver) {
  default_pool(driver);
  return *driver.current_pool;
}

CUresult allocate_captured(Driver& driver, Stream& stream, Pool& pool, CUdeviceptr* address,
                           std::size_t bytes) {
  AllocWork work;
  work.parameters.bytesize = bytes;
  work.parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  work.parameters.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  work.parameters.poolProps.location.id = 0;
  static_cast<void>(pool);  // the memory is the graph's own
  if (const CUresult code = graph_allocate(driver, work); code != CUDA_SUCCESS) return code;
  const CUdeviceptr at = work.parameters.dptr;
  if (const CUresult code = submit(driver, stream, std::move(work)); code != CUDA_SUCCESS) {
    return code;
  }
  *address = at;
  return CUDA_SUCCESS;
}

CUresult allocate(Driver& driver, Stream& stream, Pool& pool, CUdeviceptr* address,
                  std::size_t bytes) {
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (captures(stream)) return allocate_captured(driver, stream, pool, address, bytes);
  const std::uint64_t at = driver.memory.allocate(bytes, &pool);
  if (at == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  driver.memory.block(at)->usable = false;
  pool.in_use += bytes;
  pool.in_use_high = std::max(pool.in_use_high, pool.in_use);
  enqueue(driver, stream, [&driver, at] {
    const std::lock_guard lock(driver.mutex);
    if (Memory::Block* block = driver.memory.block(at)) block->usable = true;
    return CUDA_SUCCESS;
  });
  *address = at;
  return CUDA_SUCCESS;
}

CUresult free_graph_memory(Driver& driver, Stream& stream,
                           const std::shared_ptr<GraphAllocation>& allocation) {
  if (captures(stream)) {
    FreeWork work;
    work.address = allocation->address;
    return submit(driver, stream, std::move(work));
  }
  if (allocation->itself == nullptr) return CUDA_ERROR_INVALID_VALUE;
  issue_free(*allocation);
  enqueue(driver, stream, [allocation] { return run_free(*allocation); });
  return CUDA_SUCCESS;
}

bool is_switch(CUmemPool_attribute attribute) {
  return attribute == CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES ||
         attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC ||
         attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

}  // namespace
}  // namespace sim

using namespace sim;

SIM_API CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
  return call({__func__, hStream}, [&](Driver& driver) {
    return allocate(driver, stream_of(driver, hStream), current_pool(driver), dptr, bytesize);
  });
}

SIM_API CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr* dptr, size_t bytesize,
                                                 CUmemoryPool pool, CUstream hStream) {
  return call({__func__, hStream}, [&](Driver& driver) -> CUresult {
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return allocate(driver, stream_of(driver, hStream), *find<Pool>(pool, this_thread().function),
                    dptr, bytesize);
  });
}

SIM_API CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
  return call({__func__, dptr}, [&](Driver& driver) -> CUresult {
    Stream& stream = stream_of(driver, hStream);
    if (const auto allocation = graph_allocation(dptr)) {
      return free_graph_memory(driver, stream, allocation);
    }
    Memory::Block* block = driver.memory.block(dptr);
    if (block == nullptr || block->free_issued) return CUDA_ERROR_INVALID_VALUE;
    if (captures(stream)) return CUDA_ERROR_INVALID_VALUE;  // no graph allocated it
    if (block->pool != nullptr) block->pool->in_use -= block->bytes;
    block->free_issued = true;
    enqueue(
        driver, stream,
        [&driver, dptr] {
          const std::lock_guard lock(driver.mutex);
          driver.memory.free(dptr);
          return CUDA_SUCCESS;
        },
        {}, true);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* poolProps) {
  return call({__func__}, [&](Driver& driver) -> CUresult {
    if (pool == nullptr || poolProps == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (poolProps->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
    if (poolProps->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return kUnsettled;
    if (poolProps->location.id != 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult code = potentially_unsafe(driver); code != CUDA_SUCCESS) return code;
    *pool = handle_of<CUmemoryPool>(make<Pool>());
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool pool) {
  return call({__func__, pool}, [&](Driver& driver) -> CUresult {
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Pool* going = find<Pool>(pool, this_thread().function);
    if (going == driver.default_pool) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult code = potentially_unsafe(driver); code != CUDA_SUCCESS) return code;
    if (going == driver.current_pool) driver.current_pool = driver.default_pool;
    destroy(*going, this_thread().function);  // what it gave out stays until it is freed
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep) {
  return call({__func__, pool}, [&](Driver&) -> CUresult {
    static_cast<void>(minBytesToKeep);  // a pool of the simulation keeps nothing
    return find<Pool>(pool, this_thread().function) != nullptr ? CUDA_SUCCESS
                                                               : CUDA_ERROR_INVALID_VALUE;
  });
}

SIM_API CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr,
                                               void* value) {
  return call({__func__, pool}, [&](Driver&) -> CUresult {
    if (pool == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Pool& of = *find<Pool>(pool, this_thread().function);
    if (attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
      of.release_threshold = *static_cast<cuuint64_t*>(value);
    } else if (is_switch(attr)) {
      of.switches[attr] = *static_cast<int*>(value);
    } else if (attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH || attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) {
      // Both can only be reset; one mark serves both, since a pool keeps nothing that is not used.
      if (*static_cast<cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
      of.in_use_high = of.in_use;
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr,
                                               void* value) {
  return call({__func__, pool}, [&](Driver&) -> CUresult {
    if (pool == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Pool& of = *find<Pool>(pool, this_thread().function);
    if (is_switch(attr)) {
      const auto set = of.switches.find(attr);
      *static_cast<int*>(value) = set == of.switches.end() ? 1 : set->second;
      return CUDA_SUCCESS;
    }
    auto* const number = static_cast<cuuint64_t*>(value);
    switch (attr) {
      case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *number = of.release_threshold; break;
      case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *number = of.in_use; break;
      case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *number = of.in_use_high; break;
      default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map,
                                            size_t count) {
  return call({__func__, pool}, [&](Driver&) -> CUresult {
    if (pool == nullptr || (map == nullptr && count != 0)) return CUDA_ERROR_INVALID_VALUE;
    static_cast<void>(find<Pool>(pool, this_thread().function));
    for (size_t i = 0; i < count; ++i) {
      // The only device has access to its own pools, and cannot lose it.
      const bool own =
          map[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE && map[i].location.id == 0;
      if (!own || map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
        return CUDA_ERROR_INVALID_VALUE;
      }
    }
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuDeviceGetDefaultMemPool(CUmemoryPool* pool_out, CUdevice dev) {
  return call({__func__, Needs::initialised}, [&](Driver& driver) -> CUresult {
    if (pool_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (dev != 0) return CUDA_ERROR_INVALID_DEVICE;
    *pool_out = handle_of<CUmemoryPool>(&default_pool(driver));
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice dev) {
  return call({__func__, Needs::initialised}, [&](Driver& driver) -> CUresult {
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (dev != 0) return CUDA_ERROR_INVALID_DEVICE;
    *pool = handle_of<CUmemoryPool>(&current_pool(driver));
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
  return call({__func__, pool, Needs::initialised}, [&](Driver& driver) -> CUresult {
    if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (dev != 0) return CUDA_ERROR_INVALID_DEVICE;
    Pool* chosen = find<Pool>(pool, this_thread().function);
    if (const CUresult code = potentially_unsafe(driver); code != CUDA_SUCCESS) return code;
    default_pool(driver);
    driver.current_pool = chosen;
    return CUDA_SUCCESS;
  });
}
