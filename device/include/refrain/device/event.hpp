// A point in a stream's work that other streams and the host can wait for. One that was recorded
// in a window is a point in what the window records: it lets streams join that window and leave it.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "refrain/capture/window.hpp"
#include "refrain/device/backend.hpp"

namespace refrain {

/// Safe to share; copying shares.
class Event {
 public:
  Event(std::shared_ptr<Backend> backend, std::shared_ptr<BackendEvent> event, std::uint32_t device,
        std::uint64_t order) noexcept
      : backend_(std::move(backend)), event_(std::move(event)), device_(device), order_(order) {}

  /// In a window (C21).
  Event(const std::shared_ptr<Window>& window, Members::Point point, std::uint32_t device)
      : device_(device), window_(window), point_(std::move(point)) {}

  /// Whether all work before it has ended. Refused for one that a window recorded, where nothing
  /// runs (C12).
  [[nodiscard]] Result<bool> reached() const {
    REFRAIN_TRY(outside("asked for"));
    return backend_->reached(*event_);
  }
  /// Waits until all work before it has ended. Refused as `reached`.
  Result<void> wait() const {
    REFRAIN_TRY(outside("waited for by the host"));
    return backend_->wait_on_host(*event_);
  }

 private:
  friend class Stream;

  [[nodiscard]] Result<void> outside(const char* what) const {
    if (event_ != nullptr) return {};
    return Error(ErrorKind::refused_in_window,
                 std::string("An event that was recorded in a window cannot be ") + what +
                     ": what is recorded has not run.");
  }

  std::shared_ptr<Backend> backend_;
  std::shared_ptr<BackendEvent> event_;  // null in a window
  std::uint32_t device_;
  std::uint64_t order_ = 0;  // the stream's clock, which a stream that waits steps past
  std::weak_ptr<Window> window_;
  Members::Point point_;
};

}  // namespace refrain
