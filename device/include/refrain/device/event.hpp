// A point in a stream's work that other streams and the host can wait for.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "refrain/device/backend.hpp"

namespace refrain {

/// Safe to share; copying shares.
class Event {
 public:
  Event(std::shared_ptr<Backend> backend, std::shared_ptr<BackendEvent> event, std::uint32_t device,
        std::uint64_t order) noexcept
      : backend_(std::move(backend)), event_(std::move(event)), device_(device), order_(order) {}

  /// Whether all work before it has ended.
  [[nodiscard]] Result<bool> reached() const { return backend_->reached(*event_); }
  /// Waits until all work before it has ended.
  Result<void> wait() const { return backend_->wait_on_host(*event_); }

 private:
  friend class Stream;

  std::shared_ptr<Backend> backend_;
  std::shared_ptr<BackendEvent> event_;
  std::uint32_t device_;
  std::uint64_t order_;  // the stream's clock, which a stream that waits steps past
};

}  // namespace refrain
