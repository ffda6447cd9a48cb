// Code: images as modules and as libraries, the names in them, and what a kernel says of itself.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "fixture.hpp"
#include "support/temporary_folder.hpp"

using namespace conformance;

namespace {

struct Library {
  CUlibrary handle = nullptr;
  Library() {
    REQUIRE_OK(
        api().cuLibraryLoadData(&handle, kernel_image(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (handle != nullptr) api().cuLibraryUnload(handle);
  }
  [[nodiscard]] CUkernel kernel(const char* name) const {
    CUkernel found = nullptr;
    REQUIRE_OK(api().cuLibraryGetKernel(&found, handle, name));
    return found;
  }
};

std::vector<std::string> expected_names() {
  return {std::begin(kKernelNames), std::end(kKernelNames)};
}

/// Offset and size of each parameter, until the driver says that there is no more.
template <class Handle, class Query>
std::vector<std::pair<std::size_t, std::size_t>> layout(Handle handle, Query query) {
  std::vector<std::pair<std::size_t, std::size_t>> parameters;
  std::size_t offset = 0;
  std::size_t size = 0;
  while (parameters.size() < 100 &&
         query(handle, parameters.size(), &offset, &size) == CUDA_SUCCESS) {
    parameters.emplace_back(offset, size);
  }
  return parameters;
}

const std::vector<std::pair<std::size_t, std::size_t>> kManyLayout = {
    {0, 1}, {8, 8}, {16, 2}, {24, 72}, {96, 8}, {104, 3}, {112, 16}};

CUresult load(const void* image) {
  CUmodule module = nullptr;
  const CUresult code = api().cuModuleLoadData(&module, image);
  if (code == CUDA_SUCCESS) api().cuModuleUnload(module);
  return code;
}

// A text with one statement that is none, and one for an architecture that no GPU has yet.
constexpr char kBrokenPtx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry f() { nonsense; }\n";
constexpr char kFuturePtx[] =
    ".version 99.0\n.target sm_70\n.address_size 64\n.visible .entry f() { ret; }\n";

}  // namespace

TEST_CASE_FIXTURE(Primary, "CODE-01: PTX is loaded and its kernels are found by name [H]") {
  for (const char* name : kKernelNames) {
    CUfunction function = nullptr;
    CHECK_CODE(api.cuModuleGetFunction(&function, module(), name), CUDA_SUCCESS);
    CHECK(function != nullptr);
  }
}

TEST_CASE_FIXTURE(Primary, "CODE-02: a kernel that is not there is refused with 500 [H]") {
  CUfunction function = nullptr;
  CHECK_CODE(api.cuModuleGetFunction(&function, module(), "no_such_kernel"), CUDA_ERROR_NOT_FOUND);
  Library library;
  CUkernel found = nullptr;
  CHECK_CODE(api.cuLibraryGetKernel(&found, library.handle, "no_such_kernel"),
             CUDA_ERROR_NOT_FOUND);
}

TEST_CASE_FIXTURE(Primary, "CODE-03: PTX that cannot be compiled is refused with 218 [H]") {
  CHECK_CODE(load(kBrokenPtx), CUDA_ERROR_INVALID_PTX);
}

TEST_CASE_FIXTURE(Primary, "CODE-04: PTX of a later version is refused with 222 [H]") {
  CHECK_CODE(load(kFuturePtx), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
}

TEST_CASE_FIXTURE(Primary, "CODE-05: an image that is none is refused [H]") {
  const CUresult code = load("this is no image of any kind");
  const bool refused = code == CUDA_ERROR_INVALID_IMAGE || code == CUDA_ERROR_INVALID_PTX ||
                       code == CUDA_ERROR_NO_BINARY_FOR_GPU ||
                       code == CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  CHECK(refused);
  observe("a text that is no PTX", code);
}

TEST_CASE_FIXTURE(Primary, "CODE-06: a module knows how many kernels it has and which [H]") {
  unsigned count = 0;
  CHECK_CODE(api.cuModuleGetFunctionCount(&count, module()), CUDA_SUCCESS);
  REQUIRE(count == std::size(kKernelNames));
  std::vector<CUfunction> functions(count);
  CHECK_CODE(api.cuModuleEnumerateFunctions(functions.data(), count, module()), CUDA_SUCCESS);
  std::vector<std::string> names;
  for (const CUfunction function : functions) {
    const char* name = nullptr;
    REQUIRE_OK(api.cuFuncGetName(&name, function));
    names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  CHECK(names == expected_names());
}

TEST_CASE_FIXTURE(Primary, "CODE-07: a library knows how many kernels it has and which [H]") {
  Library library;
  unsigned count = 0;
  CHECK_CODE(api.cuLibraryGetKernelCount(&count, library.handle), CUDA_SUCCESS);
  REQUIRE(count == std::size(kKernelNames));
  std::vector<CUkernel> kernels(count);
  CHECK_CODE(api.cuLibraryEnumerateKernels(kernels.data(), count, library.handle), CUDA_SUCCESS);
  std::vector<std::string> names;
  for (const CUkernel found : kernels) {
    const char* name = nullptr;
    REQUIRE_OK(api.cuKernelGetName(&name, found));
    names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  CHECK(names == expected_names());
}

TEST_CASE_FIXTURE(Primary, "CODE-08: no more kernels are listed than there is room for [H]") {
  CUfunction functions[2] = {nullptr, nullptr};
  CHECK_CODE(api.cuModuleEnumerateFunctions(functions, 1, module()), CUDA_SUCCESS);
  CHECK(functions[0] != nullptr);
  CHECK(functions[1] == nullptr);
}

TEST_CASE_FIXTURE(Primary,
                  "CODE-09: a parameter's place and size are those of the declaration [X]") {
  CHECK(layout(kernel("many_params"), api.cuFuncGetParamInfo) == kManyLayout);
  Library library;
  CHECK(layout(library.kernel("many_params"), api.cuKernelGetParamInfo) == kManyLayout);
}

TEST_CASE_FIXTURE(Primary, "CODE-10: a parameter past the last is refused with 1 [H]") {
  std::size_t offset = 0;
  std::size_t size = 0;
  CHECK_CODE(api.cuFuncGetParamInfo(kernel("write_word"), 2, &offset, &size),
             CUDA_ERROR_INVALID_VALUE);
  CHECK_CODE(api.cuFuncGetParamInfo(kernel("trap"), 0, &offset, &size), CUDA_ERROR_INVALID_VALUE);
  Library library;
  CHECK_CODE(api.cuKernelGetParamInfo(library.kernel("write_word"), 2, &offset, &size),
             CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Primary, "CODE-11: a parameter's place may be asked without its size [H]") {
  std::size_t offset = 0;
  CHECK_CODE(api.cuFuncGetParamInfo(kernel("write_word"), 1, &offset, nullptr), CUDA_SUCCESS);
  CHECK(offset == 8);
}

TEST_CASE_FIXTURE(Primary, "CODE-12: a function knows its module and its name [H]") {
  const CUfunction write = kernel("write_word");
  CUmodule of_function = nullptr;
  CHECK_CODE(api.cuFuncGetModule(&of_function, write), CUDA_SUCCESS);
  CHECK(of_function == module());
  const char* name = nullptr;
  CHECK_CODE(api.cuFuncGetName(&name, write), CUDA_SUCCESS);
  CHECK(std::string(name) == "write_word");
}

TEST_CASE_FIXTURE(
    Primary, "CODE-13: a library's kernel gives a function of the current context that runs [H]") {
  Library library;
  Memory memory;
  CUfunction function = nullptr;
  CHECK_CODE(api.cuKernelGetFunction(&function, library.kernel("write_word")), CUDA_SUCCESS);
  REQUIRE_OK(launch(function, nullptr, memory.get(), std::uint32_t{13}));
  CHECK(memory.word() == 13);
}

TEST_CASE_FIXTURE(Primary, "CODE-14: a library gives a module of the current context [H]") {
  Library library;
  CUmodule of_library = nullptr;
  CHECK_CODE(api.cuLibraryGetModule(&of_library, library.handle), CUDA_SUCCESS);
  CUfunction function = nullptr;
  CHECK_CODE(api.cuModuleGetFunction(&function, of_library, "write_word"), CUDA_SUCCESS);
  CUfunction by_kernel = nullptr;
  REQUIRE_OK(api.cuKernelGetFunction(&by_kernel, library.kernel("write_word")));
  observe("the same function both ways", function == by_kernel);
}

TEST_CASE("CODE-15: a library is loaded without any context [H]") {
  CUdevice device = 0;
  REQUIRE_OK(api().cuDeviceGet(&device, 0));
  CUcontext current = nullptr;
  REQUIRE_OK(api().cuCtxGetCurrent(&current));
  REQUIRE(current == nullptr);
  Library library;
  CHECK(library.kernel("write_word") != nullptr);
  CUfunction function = nullptr;
  CHECK_CODE(api().cuKernelGetFunction(&function, library.kernel("write_word")),
             CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE_FIXTURE(Primary, "CODE-16: the same name gives the same handle [?]") {
  observe("functions of a module", kernel("add_one") == kernel("add_one"));
  Library library;
  observe("kernels of a library", library.kernel("add_one") == library.kernel("add_one"));
}

TEST_CASE_FIXTURE(Primary, "CODE-17: a kernel's attributes are those of its code [H]") {
  int value = 0;
  const CUfunction write = kernel("write_word");
  CHECK_CODE(api.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, write),
             CUDA_SUCCESS);
  CHECK(value >= 1);
  CHECK(value <= 1024);
  CHECK_CODE(api.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, write),
             CUDA_SUCCESS);
  CHECK(value == 0);
  CHECK_CODE(api.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, write),
             CUDA_SUCCESS);
  CHECK(value == 0);
  CHECK_CODE(api.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, write), CUDA_SUCCESS);
  observe("registers of write_word", value);
  CHECK_CODE(api.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX, write),
             CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Primary, "CODE-18: the limit of dynamic shared memory is what was set [H]") {
  const CUfunction write = kernel("write_word");
  constexpr auto kLimit = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  CHECK_CODE(api.cuFuncSetAttribute(write, kLimit, 1024), CUDA_SUCCESS);
  int value = 0;
  CHECK_CODE(api.cuFuncGetAttribute(&value, kLimit, write), CUDA_SUCCESS);
  CHECK(value == 1024);
  Library library;
  const CUkernel of_library = library.kernel("write_word");
  CHECK_CODE(api.cuKernelSetAttribute(kLimit, 2048, of_library, device), CUDA_SUCCESS);
  CHECK_CODE(api.cuKernelGetAttribute(&value, kLimit, of_library, device), CUDA_SUCCESS);
  CHECK(value == 2048);
}

TEST_CASE_FIXTURE(Primary, "CODE-19: a variable of a module is found with its size and start [H]") {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  CHECK_CODE(api.cuModuleGetGlobal_v2(&address, &bytes, module(), "counter"), CUDA_SUCCESS);
  CHECK(bytes == 4);
  std::uint32_t value = 0;
  CHECK_CODE(api.cuMemcpyDtoH_v2(&value, address, 4), CUDA_SUCCESS);
  CHECK(value == 7);
  CHECK_CODE(api.cuModuleGetGlobal_v2(&address, nullptr, module(), "counter"), CUDA_SUCCESS);
  CHECK_CODE(api.cuModuleGetGlobal_v2(&address, &bytes, module(), "no_such_variable"),
             CUDA_ERROR_NOT_FOUND);
}

TEST_CASE_FIXTURE(Primary, "CODE-20: a variable of a library is found in the current context [H]") {
  Library library;
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  CHECK_CODE(api.cuLibraryGetGlobal(&address, &bytes, library.handle, "counter"), CUDA_SUCCESS);
  CHECK(bytes == 4);
  std::uint32_t value = 0;
  CHECK_CODE(api.cuMemcpyDtoH_v2(&value, address, 4), CUDA_SUCCESS);
  CHECK(value == 7);
  CHECK_CODE(api.cuLibraryGetGlobal(&address, &bytes, library.handle, "no_such_variable"),
             CUDA_ERROR_NOT_FOUND);
}

TEST_CASE_FIXTURE(Primary, "CODE-21: two modules of one image have variables of their own [H]") {
  CUmodule other = nullptr;
  REQUIRE_OK(api.cuModuleLoadDataEx(&other, kernel_image(), 0, nullptr, nullptr));
  CUdeviceptr first = 0;
  CUdeviceptr second = 0;
  REQUIRE_OK(api.cuModuleGetGlobal_v2(&first, nullptr, module(), "counter"));
  REQUIRE_OK(api.cuModuleGetGlobal_v2(&second, nullptr, other, "counter"));
  CHECK(first != second);
  CHECK_CODE(api.cuModuleUnload(other), CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary, "CODE-22: a function is loaded after it has been asked to be [H]") {
  CUmoduleLoadingMode mode = CU_MODULE_EAGER_LOADING;
  CHECK_CODE(api.cuModuleGetLoadingMode(&mode), CUDA_SUCCESS);
  observe("modules are loaded lazily", mode == CU_MODULE_LAZY_LOADING);
  const CUfunction write = kernel("write_word");
  CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_UNLOADED;
  CHECK_CODE(api.cuFuncIsLoaded(&state, write), CUDA_SUCCESS);
  observe("a function is loaded when it is found", state == CU_FUNCTION_LOADING_STATE_LOADED);
  CHECK_CODE(api.cuFuncLoad(write), CUDA_SUCCESS);
  CHECK_CODE(api.cuFuncIsLoaded(&state, write), CUDA_SUCCESS);
  CHECK(state == CU_FUNCTION_LOADING_STATE_LOADED);
  CHECK_CODE(api.cuFuncLoad(write), CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Primary, "CODE-23: a listed function need not be loaded [?]") {
  CUmodule other = nullptr;
  REQUIRE_OK(api.cuModuleLoadData(&other, kernel_image()));
  CUfunction function = nullptr;
  REQUIRE_OK(api.cuModuleEnumerateFunctions(&function, 1, other));
  CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_LOADED;
  REQUIRE_OK(api.cuFuncIsLoaded(&state, function));
  observe("loaded when listed", state == CU_FUNCTION_LOADING_STATE_LOADED);
  REQUIRE_OK(api.cuModuleUnload(other));
}

TEST_CASE_FIXTURE(Primary,
                  "CODE-24: a kernel knows its library where the driver is new enough [H]") {
#if CUDA_VERSION >= 12050
  const auto get_library = api.cuKernelGetLibrary.get();
  if (!get_library) SKIP_CASE("the driver is older than 12.5");
  Library library;
  CUlibrary found = nullptr;
  CHECK_CODE((*get_library)(&found, library.kernel("add_one")), CUDA_SUCCESS);
  CHECK(found == library.handle);
#else
  SKIP_CASE("built with headers older than 12.5");
#endif
}

TEST_CASE_FIXTURE(Primary, "CODE-25: how many blocks fit a multiprocessor is at least one [H]") {
  int blocks = 0;
  CHECK_CODE(api.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel("add_one"), 128, 0),
             CUDA_SUCCESS);
  CHECK(blocks >= 1);
  int grid = 0;
  int block = 0;
  CHECK_CODE(api.cuOccupancyMaxPotentialBlockSize(&grid, &block, kernel("add_one"), nullptr, 0, 0),
             CUDA_SUCCESS);
  CHECK(grid >= 1);
  CHECK(block >= 1);
  CHECK(block <= 1024);
}

TEST_CASE_FIXTURE(Primary, "CODE-26: an image may be freed when it has been loaded [H]") {
  std::string image = kernel_image();
  CUmodule other = nullptr;
  REQUIRE_OK(api.cuModuleLoadData(&other, image.c_str()));
  std::fill(image.begin(), image.end(), 'x');
  CUfunction write = nullptr;
  REQUIRE_OK(api.cuModuleGetFunction(&write, other, "write_word"));
  Memory memory;
  REQUIRE_OK(launch(write, nullptr, memory.get(), std::uint32_t{26}));
  CHECK(memory.word() == 26);
  CHECK_CODE(api.cuModuleUnload(other), CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(
    Primary, "CODE-27: a library is read from a file and a file that is not there is refused [H]") {
  const refrain::test::TemporaryFolder folder;
  const std::string path = folder.file("kernels.ptx").string();
  std::ofstream(path) << kernel_image();
  CUlibrary library = nullptr;
  REQUIRE_OK(
      api.cuLibraryLoadFromFile(&library, path.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel found = nullptr;
  CHECK_CODE(api.cuLibraryGetKernel(&found, library, "add_one"), CUDA_SUCCESS);
  CHECK_CODE(api.cuLibraryUnload(library), CUDA_SUCCESS);
  const std::string none = folder.file("none.ptx").string();
  const CUresult code =
      api.cuLibraryLoadFromFile(&library, none.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  CHECK(code != CUDA_SUCCESS);
  observe("a file that is not there", code);
}
