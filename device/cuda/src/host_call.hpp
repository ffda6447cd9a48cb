// A function of the program's own on a CUDA device. The host cannot reach the device's memory, so
// what it reads is copied to pinned memory before it and what it writes is copied back behind it.
// Private to device/cuda.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cuda_stream.hpp"

namespace refrain::cuda {

/// One view of it.
struct StagedView {
  std::uint64_t address = 0;  // on the device
  std::uint64_t bytes = 0;
  std::size_t offset = 0;  // in the pinned memory
  bool read = false;
  bool written = false;
};

/// A function with the pinned memory of its views.
class StagedCall {
 public:
  static Result<std::unique_ptr<StagedCall>> make(const std::shared_ptr<Context>& context,
                                                  const BoundHost& host);

  [[nodiscard]] std::vector<StagedView>& views() noexcept { return views_; }
  [[nodiscard]] std::byte* pinned(const StagedView& view) const noexcept {
    return memory_ == nullptr ? nullptr : memory_->data() + view.offset;
  }
  /// Calls the function, on the driver's thread, on what has been copied.
  Result<void> call() const;

 private:
  StagedCall() = default;
  const HostFunction* function_ = nullptr;
  std::vector<StagedView> views_;
  std::unique_ptr<PinnedMemory> memory_;
};

}  // namespace refrain::cuda
