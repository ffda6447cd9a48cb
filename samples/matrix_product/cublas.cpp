#include "cublas.hpp"

#include <dlfcn.h>

#include <utility>

namespace matrix_product {

// As cublas_v2.h declares them, with its enumerations as int; source: the cuBLAS library's
// documentation, "Using the cuBLAS API".
struct Cublas::Functions {
  explicit Functions(void* opened) noexcept : library(opened) {}
  Functions(const Functions&) = delete;
  Functions& operator=(const Functions&) = delete;
  ~Functions() { dlclose(library); }

  void* library;
  int (*create)(void** handle) = nullptr;
  int (*destroy)(void* handle) = nullptr;
  int (*set_stream)(void* handle, void* stream) = nullptr;
  int (*set_workspace)(void* handle, void* memory, std::size_t bytes) = nullptr;
  int (*sgemm)(void* handle, int transpose_a, int transpose_b, int m, int n, int k,
               const float* alpha, const float* a, int lda, const float* b, int ldb,
               const float* beta, float* c, int ldc) = nullptr;

  template <class Function>
  refrain::Result<void> find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function != nullptr) return {};
    return refrain::Error(
        refrain::ErrorKind::driver_missing,
        "The library that was opened as cuBLAS has no " + std::string(name) + ".");
  }
};

Cublas::Cublas(std::unique_ptr<Functions> functions) noexcept : functions_(std::move(functions)) {}

Cublas::~Cublas() {
  if (handle_ != nullptr) functions_->destroy(handle_);
}

refrain::Result<void> Cublas::check(int status, const char* call) const {
  if (status == 0) return {};
  return refrain::Error(
      refrain::ErrorKind::device_refused,
      "cuBLAS answered " + std::string(call) + " with status " + std::to_string(status) + ".");
}

refrain::Result<std::shared_ptr<Cublas>> Cublas::open(const std::string& library) {
  void* opened = nullptr;
  if (!library.empty()) {
    opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  } else {
    opened = dlopen("libcublas.so.13", RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) opened = dlopen("libcublas.so.12", RTLD_NOW | RTLD_LOCAL);
  }
  if (opened == nullptr) {
    const char* const why = dlerror();  // NOLINT: of this thread
    return refrain::Error(refrain::ErrorKind::driver_missing,
                          "cuBLAS cannot be opened: " + std::string(why != nullptr ? why : "") +
                              ". (Install the CUDA toolkit, or name the library.)");
  }
  auto functions = std::make_unique<Functions>(opened);
  REFRAIN_TRY(functions->find(functions->create, "cublasCreate_v2"));
  REFRAIN_TRY(functions->find(functions->destroy, "cublasDestroy_v2"));
  REFRAIN_TRY(functions->find(functions->set_stream, "cublasSetStream_v2"));
  REFRAIN_TRY(functions->find(functions->set_workspace, "cublasSetWorkspace_v2"));
  REFRAIN_TRY(functions->find(functions->sgemm, "cublasSgemm_v2"));
  std::shared_ptr<Cublas> made(new Cublas(std::move(functions)));
  REFRAIN_TRY(made->check(made->functions_->create(&made->handle_), "cublasCreate"));
  return made;
}

refrain::Result<void> Cublas::multiply(void* stream, void* workspace, std::size_t workspace_bytes,
                                       int rows, const float* a, const float* b, float* c) {
  // The workspace after the stream, which takes it away.
  REFRAIN_TRY(check(functions_->set_stream(handle_, stream), "cublasSetStream"));
  REFRAIN_TRY(
      check(functions_->set_workspace(handle_, workspace, workspace_bytes), "cublasSetWorkspace"));
  const float one = 1;
  const float zero = 0;
  // cuBLAS counts column by column, so it sees everything transposed: b a there is a b here.
  return check(
      functions_->sgemm(handle_, 0, 0, rows, rows, rows, &one, b, rows, a, rows, &zero, c, rows),
      "cublasSgemm");
}

}  // namespace matrix_product
