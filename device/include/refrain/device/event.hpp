// A point in a stream's work that other streams and the host can wait for. One that was recorded
// in a window is a point in what the window records: it lets streams join that window and leave it.
#pragma once

#include <cstdint>
#include <memory>

#include "refrain/capture/window.hpp"
#include "refrain/device/backend.hpp"
#include "refrain/device/order.hpp"

namespace refrain {

class DeviceCore;

/// Safe to share; copying shares.
class Event {
 public:
  /// `before` is what `device` knows of the stream's work so far.
  Event(std::shared_ptr<DeviceCore> device, std::shared_ptr<BackendEvent> event,
        Order::Clock before);

  /// In a window (C21).
  Event(const std::shared_ptr<Window>& window, Members::Point point, std::uint32_t device);

  /// Whether all work before it has ended. Refused for one that a window recorded, where nothing
  /// runs (C12).
  [[nodiscard]] Result<bool> reached() const;
  /// Waits until all work before it has ended. Refused as `reached`.
  Result<void> wait() const;

 private:
  friend class Stream;

  [[nodiscard]] Result<void> outside(const char* what) const;
  /// It was seen to be reached.
  void passed() const;

  std::shared_ptr<DeviceCore> core_;     // null in a window
  std::shared_ptr<BackendEvent> event_;  // null in a window
  std::uint32_t device_;
  Order::Clock before_;  // what has ended when it is reached (E11)
  std::weak_ptr<Window> window_;
  Members::Point point_;
};

}  // namespace refrain
