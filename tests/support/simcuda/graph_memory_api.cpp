// The functions on the memory that a device keeps for graphs.
#include "simcuda/export.hpp"
#include "simcuda/graph.hpp"
#include "simcuda/graph_memory.hpp"

using namespace sim;

SIM_API CUresult CUDAAPI cuDeviceGraphMemTrim(CUdevice device) {
  return call({__func__}, [&](Driver&) -> CUresult {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    graph_memory().reserved = graph_memory().used;
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute id,
                                                      void* value) {
  return call({__func__}, [&](Driver&) -> CUresult {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const GraphMemory& memory = graph_memory();
    auto& out = *static_cast<cuuint64_t*>(value);
    switch (raw(id)) {
      case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT: out = memory.used; break;
      case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: out = memory.used_high; break;
      case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT: out = memory.reserved; break;
      case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH: out = memory.reserved_high; break;
      default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute id,
                                                      void* value) {
  return call({__func__}, [&](Driver&) -> CUresult {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    if (value == nullptr || *static_cast<const cuuint64_t*>(value) != 0) {
      return CUDA_ERROR_INVALID_VALUE;  // a high watermark can only be reset
    }
    GraphMemory& memory = graph_memory();
    switch (raw(id)) {
      case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: memory.used_high = memory.used; break;
      case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH: memory.reserved_high = memory.reserved; break;
      default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}
