// The functions that load images as modules and as libraries, and find what is in them.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "simcuda/code.hpp"
#include "simcuda/export.hpp"
#include "simcuda/submit.hpp"

namespace sim {
namespace {

CUresult load_module(Driver& driver, CUmodule* module, const void* image) {
  if (module == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult code = potentially_unsafe(driver); code != CUDA_SUCCESS) return code;
  Code read(Kind::module);
  if (const CUresult code = read_image(driver, image, read); code != CUDA_SUCCESS) return code;
  Code* made = nullptr;
  const CUresult code = make_module(driver, Driver::current(), read, made);
  if (code == CUDA_SUCCESS) *module = handle_of<CUmodule>(made);
  return code;
}

CUresult load_library(Driver& driver, CUlibrary* library, const void* image) {
  if (library == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult code = potentially_unsafe(driver); code != CUDA_SUCCESS) return code;
  auto* made = make<Code>(Kind::library);
  if (const CUresult code = read_image(driver, image, *made); code != CUDA_SUCCESS) {
    destroy(*made, this_thread().function);
    return code;
  }
  make_functions(*made);
  *library = handle_of<CUlibrary>(made);
  return CUDA_SUCCESS;
}

Code* module_behind(CUmodule handle) {
  return find<Code>(handle, this_thread().function, Kind::module);
}

Code* library_behind(CUlibrary handle) {
  return find<Code>(handle, this_thread().function, Kind::library);
}

template <class Handle>
CUresult find_function(const Code* code, const char* name, Handle* function) {
  if (code == nullptr || name == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Function* found = function_named(*code, name);
  if (found == nullptr) return CUDA_ERROR_NOT_FOUND;
  *function = handle_of<Handle>(found);
  return CUDA_SUCCESS;
}

CUresult count_functions(const Code* code, unsigned* count) {
  if (code == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<unsigned>(code->functions.size());
  return CUDA_SUCCESS;
}

template <class Handle>
CUresult list_functions(const Code* code, Handle* functions, unsigned room) {
  if (code == nullptr || functions == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t count = std::min<std::size_t>(room, code->functions.size());
  for (std::size_t i = 0; i < count; ++i) functions[i] = handle_of<Handle>(code->functions[i]);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace sim

using namespace sim;

SIM_API CUresult CUDAAPI cuModuleLoadData(CUmodule* module, const void* image) {
  return call({__func__}, [&](Driver& driver) { return load_module(driver, module, image); });
}

// Options tune a compiler, and there is none here.
SIM_API CUresult CUDAAPI cuModuleLoadDataEx(CUmodule* module, const void* image,
                                            unsigned numOptions, CUjit_option* options,
                                            void** optionValues) {
  return call({__func__}, [&](Driver& driver) -> CUresult {
    if (numOptions != 0 && (options == nullptr || optionValues == nullptr)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return load_module(driver, module, image);
  });
}

SIM_API CUresult CUDAAPI cuModuleUnload(CUmodule module) {
  return call({__func__, module}, [&](Driver& driver) -> CUresult {
    Code* code = module_behind(module);
    if (code == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult refused = potentially_unsafe(driver); refused != CUDA_SUCCESS) {
      return refused;
    }
    unload(driver, *code, this_thread().function);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuModuleGetFunction(CUfunction* function, CUmodule module,
                                             const char* name) {
  return call({__func__, module}, [&](Driver&) -> CUresult {
    return find_function(module_behind(module), name, function);
  });
}

SIM_API CUresult CUDAAPI cuModuleGetGlobal_v2(CUdeviceptr* address, std::size_t* bytes,
                                              CUmodule module, const char* name) {
  return call({__func__, module}, [&](Driver&) -> CUresult {
    const Code* code = module_behind(module);
    if (code == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return find_variable(*code, name, address, bytes);
  });
}

SIM_API CUresult CUDAAPI cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return call({__func__, Needs::initialised}, [&](Driver&) -> CUresult {
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_EAGER_LOADING;
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
  return call({__func__, module},
              [&](Driver&) -> CUresult { return count_functions(module_behind(module), count); });
}

SIM_API CUresult CUDAAPI cuModuleEnumerateFunctions(CUfunction* functions, unsigned room,
                                                    CUmodule module) {
  return call({__func__, module}, [&](Driver&) -> CUresult {
    return list_functions(module_behind(module), functions, room);
  });
}

// Libraries belong to no context.

SIM_API CUresult CUDAAPI cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*,
                                           void**, unsigned, CUlibraryOption*, void**, unsigned) {
  return call({__func__, Needs::initialised},
              [&](Driver& driver) { return load_library(driver, library, code); });
}

SIM_API CUresult CUDAAPI cuLibraryLoadFromFile(CUlibrary* library, const char* file, CUjit_option*,
                                               void**, unsigned, CUlibraryOption*, void**,
                                               unsigned) {
  return call({__func__, Needs::initialised}, [&](Driver& driver) -> CUresult {
    if (library == nullptr || file == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::ifstream stream(file, std::ios::binary);
    if (!stream) return CUDA_ERROR_FILE_NOT_FOUND;
    const std::string image{std::istreambuf_iterator<char>(stream), {}};
    return load_library(driver, library, image.c_str());
  });
}

SIM_API CUresult CUDAAPI cuLibraryUnload(CUlibrary library) {
  return call({__func__, library, Needs::initialised}, [&](Driver& driver) -> CUresult {
    Code* code = library_behind(library);
    if (code == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult refused = potentially_unsafe(driver); refused != CUDA_SUCCESS) {
      return refused;
    }
    unload(driver, *code, this_thread().function);
    return CUDA_SUCCESS;
  });
}

SIM_API CUresult CUDAAPI cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return call({__func__, library, Needs::initialised}, [&](Driver&) -> CUresult {
    return find_function(library_behind(library), name, kernel);
  });
}

SIM_API CUresult CUDAAPI cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  return call({__func__, library}, [&](Driver& driver) -> CUresult {
    Code* of = library_behind(library);
    if (module == nullptr || of == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Code* found = nullptr;
    const CUresult code = module_of(driver, Driver::current(), *of, found);
    if (code == CUDA_SUCCESS) *module = handle_of<CUmodule>(found);
    return code;
  });
}

SIM_API CUresult CUDAAPI cuLibraryGetGlobal(CUdeviceptr* address, std::size_t* bytes,
                                            CUlibrary library, const char* name) {
  return call({__func__, library}, [&](Driver& driver) -> CUresult {
    Code* of = library_behind(library);
    if (of == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Code* module = nullptr;
    const CUresult code = module_of(driver, Driver::current(), *of, module);
    return code == CUDA_SUCCESS ? find_variable(*module, name, address, bytes) : code;
  });
}

SIM_API CUresult CUDAAPI cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  return call({__func__, library, Needs::initialised},
              [&](Driver&) -> CUresult { return count_functions(library_behind(library), count); });
}

SIM_API CUresult CUDAAPI cuLibraryEnumerateKernels(CUkernel* kernels, unsigned room,
                                                   CUlibrary library) {
  return call({__func__, library, Needs::initialised}, [&](Driver&) -> CUresult {
    return list_functions(library_behind(library), kernels, room);
  });
}
