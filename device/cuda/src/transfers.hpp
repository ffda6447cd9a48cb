// The stream on which a device moves bytes for the host, who waits for each move: other streams may
// use the bytes when the call is back, and nothing that they are doing is waited for. Private to
// device/cuda.
#pragma once

#include <memory>

#include "context.hpp"

namespace refrain::cuda {

/// Safe to share.
class Transfers {
 public:
  static Result<std::unique_ptr<Transfers>> create(const std::shared_ptr<Context>& context);
  Transfers(std::shared_ptr<Context> context, CUstream stream) noexcept
      : context_(std::move(context)), stream_(stream) {}
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;
  ~Transfers() {
    context_->destroy([stream = stream_](const DriverApi& api) { api.cuStreamDestroy_v2(stream); });
  }

  [[nodiscard]] CUstream stream() const noexcept { return stream_; }
  /// `queue(api, stream)` asks the driver to move bytes; back once they have arrived.
  template <class Queue>
  Result<void> move(const char* call, Queue&& queue) {
    REFRAIN_TRY(context_->alive());
    context_->sweep();
    const Entered here(*context_);
    REFRAIN_TRY(here.check(*context_));
    REFRAIN_TRY(context_->check(queue(context_->api(), stream_), call));
    return finish();
  }

 private:
  /// Waits for what has been queued.
  Result<void> finish();

  std::shared_ptr<Context> context_;
  CUstream stream_;
};

}  // namespace refrain::cuda
