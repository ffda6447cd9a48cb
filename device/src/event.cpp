#include "refrain/device/event.hpp"

#include <string>
#include <utility>

#include "refrain/device/device.hpp"

namespace refrain {

Event::Event(std::shared_ptr<DeviceCore> device, std::shared_ptr<BackendEvent> event,
             std::uint64_t time, Order::Clock before) noexcept
    : core_(std::move(device)),
      event_(std::move(event)),
      device_(core_->number()),
      time_(time),
      before_(std::move(before)) {}

Event::Event(const std::shared_ptr<Window>& window, Members::Point point, std::uint32_t device)
    : device_(device), window_(window), point_(std::move(point)) {}

Result<void> Event::outside(const char* what) const {
  if (event_ != nullptr) return {};
  return Error(ErrorKind::refused_in_window,
               std::string("An event that was recorded in a window cannot be ") + what +
                   ": what is recorded has not run.");
}

Result<bool> Event::reached() const {
  REFRAIN_TRY(outside("asked for"));
  Result<bool> reached = core_->backend().reached(*event_);
  if (reached.ok() && *reached) core_->order().ended(before_);  // E11
  return reached;
}

Result<void> Event::wait() const {
  REFRAIN_TRY(outside("waited for by the host"));
  REFRAIN_TRY(core_->backend().wait_on_host(*event_));
  core_->order().ended(before_);  // E11
  return {};
}

}  // namespace refrain
