// What functions and kernels say of themselves, and how many of them a multiprocessor holds.
#include <algorithm>

#include "simcuda/code.hpp"
#include "simcuda/device.hpp"
#include "simcuda/export.hpp"

namespace sim {
namespace {

template <class Handle>
Function* behind(Handle handle) {
  return find<Function>(handle, this_thread().function);
}

CUresult tell_name(const Function* function, const char** name) {
  if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = function->entry->name.c_str();
  return CUDA_SUCCESS;
}

CUresult tell_parameter(const Function* function, std::size_t index, std::size_t* offset,
                        std::size_t* size) {
  if (function == nullptr || offset == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto& parameters = function->entry->parameters;
  if (index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = parameters[index].offset;
  if (size != nullptr) *size = parameters[index].size;
  return CUDA_SUCCESS;
}

/// A kernel's function in the current context.
CUresult function_of(Driver& driver, Function& kernel, Function*& function) {
  if (!kernel.is_kernel) return CUDA_ERROR_INVALID_HANDLE;
  Code* module = nullptr;
  const CUresult code = module_of(driver, Driver::current(), *kernel.code, module);
  if (code != CUDA_SUCCESS) return code;
  function = kernel.twin = function_named(*module, kernel.entry->name.c_str());
  return CUDA_SUCCESS;
}

int blocks_per_multiprocessor(const Function& function, int threads, std::size_t shared) {
  if (threads > function.entry->max_threads) return 0;
  const int warps = (threads + kWarp - 1) / kWarp;
  const auto bytes = shared + static_cast<std::size_t>(function.entry->static_shared_bytes) +
                     static_cast<std::size_t>(kReservedShared);
  const int by_shared = static_cast<int>(static_cast<std::size_t>(kMultiprocessorShared) / bytes);
  const int by_registers = kRegisters / std::max(1, function.entry->registers * warps * kWarp);
  return std::min(
      {kMultiprocessorThreads / (warps * kWarp), kMultiprocessorBlocks, by_shared, by_registers});
}

}  // namespace
}  // namespace sim

using namespace sim;

SIM_API CUresult CUDAAPI cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  return call({__func__, kernel}, [&](Driver& driver) -> CUresult {
    Function* of = behind(kernel);
    if (function == nullptr || of == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Function* found = nullptr;
    const CUresult code = function_of(driver, *of, found);
    if (code == CUDA_SUCCESS) *function = handle_of<CUfunction>(found);
    return code;
  });
}

SIM_API CUresult CUDAAPI cuKernelGetName(const char** name, CUkernel kernel) {
  return call({__func__, kernel, Needs::initialised},
              [&](Driver&) { return tell_name(behind(kernel), name); });
}

SIM_API CUresult CUDAAPI cuKernelGetParamInfo(CUkernel kernel, std::size_t index,
                                              std::size_t* offset, std::size_t* size) {
  return call({__func__, kernel, Needs::initialised},
              [&](Driver&) { return tell_parameter(behind(kernel), index, offset, size); });
}

SIM_API CUresult CUDAAPI cuKernelGetAttribute(int* value, CUfunction_attribute attribute,
                                              CUkernel kernel, CUdevice device) {
  return call({__func__, kernel, Needs::initialised}, [&](Driver&) -> CUresult {
    const Function* of = behind(kernel);
    if (of == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    return get_attribute(*of, attribute, value);
  });
}

SIM_API CUresult CUDAAPI cuKernelSetAttribute(CUfunction_attribute attribute, int value,
                                              CUkernel kernel, CUdevice device) {
  return call({__func__, kernel, Needs::initialised}, [&](Driver&) -> CUresult {
    Function* of = behind(kernel);
    if (of == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    return set_attribute(*of, attribute, value);
  });
}

#if CUDA_VERSION >= 12050
SIM_API CUresult CUDAAPI cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  return call({__func__, kernel, Needs::initialised}, [&](Driver&) -> CUresult {
    const Function* of = behind(kernel);
    if (library == nullptr || of == nullptr || !of->is_kernel) return CUDA_ERROR_INVALID_VALUE;
    *library = handle_of<CUlibrary>(of->code);
    return CUDA_SUCCESS;
  });
}
#endif

SIM_API CUresult CUDAAPI cuFuncGetAttribute(int* value, CUfunction_attribute attribute,
                                            CUfunction function) {
  return call({__func__, function}, [&](Driver&) -> CUresult {
    const Function* of = behind(function);
    return of == nullptr ? CUDA_ERROR_INVALID_VALUE : get_attribute(*of, attribute, value);
  });
}

SIM_API CUresult CUDAAPI cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                                            int value) {
  return call({__func__, function}, [&](Driver&) -> CUresult {
    Function* of = behind(function);
    return of == nullptr ? CUDA_ERROR_INVALID_VALUE : set_attribute(*of, attribute, value);
  });
}

SIM_API CUresult CUDAAPI cuFuncGetModule(CUmodule* module, CUfunction function) {
  return call({__func__, function}, [&](Driver&) -> CUresult {
    const Function* of = behind(function);
    if (module == nullptr || of == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (of->is_kernel) return kUnsettled;
    *module = handle_of<CUmodule>(of->code);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuFuncGetName(const char** name, CUfunction function) {
  return call({__func__, function}, [&](Driver&) { return tell_name(behind(function), name); });
}

SIM_API CUresult CUDAAPI cuFuncGetParamInfo(CUfunction function, std::size_t index,
                                            std::size_t* offset, std::size_t* size) {
  return call({__func__, function},
              [&](Driver&) { return tell_parameter(behind(function), index, offset, size); });
}

// Everything is loaded with its module.
SIM_API CUresult CUDAAPI cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  return call({__func__, function}, [&](Driver&) -> CUresult {
    if (state == nullptr || behind(function) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuFuncLoad(CUfunction function) {
  return call({__func__, function}, [&](Driver&) -> CUresult {
    return behind(function) == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                                     CUfunction function,
                                                                     int block_size,
                                                                     std::size_t shared_bytes) {
  return call({__func__, function}, [&](Driver&) -> CUresult {
    const Function* of = behind(function);
    if (blocks == nullptr || of == nullptr || block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
    *blocks = blocks_per_multiprocessor(*of, block_size, shared_bytes);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuOccupancyMaxPotentialBlockSize(int* grid_size, int* block_size,
                                                          CUfunction function,
                                                          CUoccupancyB2DSize shared_of,
                                                          std::size_t shared_bytes, int limit) {
  return call({__func__, function}, [&](Driver&) -> CUresult {
    const Function* of = behind(function);
    if (grid_size == nullptr || block_size == nullptr || of == nullptr || limit < 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const int most = limit == 0 ? of->entry->max_threads : std::min(limit, of->entry->max_threads);
    int best_threads = 0;
    int best = 0;
    int best_blocks = 0;
    for (int size = most; size > 0; size -= size % kWarp == 0 ? kWarp : size % kWarp) {
      const std::size_t shared = shared_of == nullptr ? shared_bytes : shared_of(size);
      const int blocks = blocks_per_multiprocessor(*of, size, shared);
      if (blocks * size <= best_threads) continue;
      best_threads = blocks * size;
      best = size;
      best_blocks = blocks;
    }
    *block_size = best;
    *grid_size = best_blocks * kMultiprocessors;
    return CUDA_SUCCESS;
  });
}
