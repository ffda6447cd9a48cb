// The few functions of cuBLAS that a matrix product needs, from a library that is opened when the
// program runs. None of it has run on a GPU so far.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "refrain/base/result.hpp"

namespace matrix_product {

/// A handle of cuBLAS; for one thread at a time. Works in the context that is current.
class Cublas {
 public:
  /// Opens `library`, or what the system has where that is empty. Allocates memory of the device's,
  /// so do it before a window.
  static refrain::Result<std::shared_ptr<Cublas>> open(const std::string& library);
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  /// c = a b on `stream`, all of `rows` times `rows`, row by row; uses `workspace` and no memory of
  /// its own, so it may be captured.
  refrain::Result<void> multiply(void* stream, void* workspace, std::size_t workspace_bytes,
                                 int rows, const float* a, const float* b, float* c);

 private:
  struct Functions;
  explicit Cublas(std::unique_ptr<Functions> functions) noexcept;
  refrain::Result<void> check(int status, const char* call) const;

  std::unique_ptr<Functions> functions_;
  void* handle_ = nullptr;
};

}  // namespace matrix_product
