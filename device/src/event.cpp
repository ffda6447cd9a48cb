#include "refrain/device/event.hpp"

#include <string>
#include <utility>

#include "refrain/device/calls_forbidden.hpp"
#include "refrain/device/device.hpp"

namespace refrain {

Event::Event(std::shared_ptr<DeviceCore> device, std::shared_ptr<BackendEvent> event,
             Order::Clock before)
    : core_(std::move(device)),
      event_(hold_for(core_, std::move(event))),
      device_(core_->number()),
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
  if (!reached.ok()) core_->refused_by_device(reached.error());  // C17
  if (reached.ok() && *reached) passed();
  return reached;
}

Result<void> Event::wait() const {
  REFRAIN_TRY(outside("waited for by the host"));
  REFRAIN_TRY(CallsForbidden::look(*core_, "An event", "be waited for by the host"));
  Result<void> waited = core_->backend().wait_on_host(*event_);
  if (!waited.ok()) core_->refused_by_device(waited.error());  // C17
  if (waited.ok()) passed();
  return waited;
}

void Event::passed() const {
  core_->hear_of_ends();          // E10
  core_->order().ended(before_);  // E11
}

}  // namespace refrain
