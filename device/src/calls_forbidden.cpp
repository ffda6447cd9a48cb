#include "refrain/device/calls_forbidden.hpp"

#include "refrain/base/kernel_name.hpp"
#include "refrain/base/text.hpp"

namespace refrain {
namespace {

std::string inside(const ForbiddenPlace& place) {
  const auto work = [&] {
    return quote(kernel_name(place.kernel)) + " on stream " + std::to_string(place.stream.number) +
           text(place.where);
  };
  switch (place.kind) {
    case ForbiddenPlace::Kind::worker:
      return work() +
             ", which a worker's thread runs. (Call it where that work was issued, before or after "
             "it.)";
    case ForbiddenPlace::Kind::replay:
      return "a node of " + work() +
             ", a replay. (Call it where the replay was issued, before or after it.)";
    case ForbiddenPlace::Kind::native:
      return work() + ", native work. (Call it where that work was issued, before or after it.)";
    case ForbiddenPlace::Kind::preparing:
      return quote(kernel_name(place.kernel)) +
             ", whose native work is being made ready. (Call it before or after that.)";
    case ForbiddenPlace::Kind::on_failure:
    case ForbiddenPlace::Kind::on_unread: break;
  }
  return std::string("the listener ") +
         (place.kind == ForbiddenPlace::Kind::on_unread ? "on_unread" : "on_failure") +
         ". (Keep what it hears, and act on that when the call that told it is back.)";
}

}  // namespace

Result<void> CallsForbidden::look(const DeviceCore& device, const std::string& subject,
                                  const char* call) {
  CallsForbidden* each = innermost_;
  while (each != nullptr && &each->device_ != &device) each = each->around_;
  if (each == nullptr) return {};
  Error error(ErrorKind::wrong_state,
              subject + " cannot " + call + " inside " + inside(each->place_));  // E6
  if (!each->refused_) each->refused_ = error;
  return error;
}

}  // namespace refrain
