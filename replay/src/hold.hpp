// Holding an instance for one call. Private to replay/.
#pragma once

#include <memory>
#include <utility>

#include "instance_body.hpp"
#include "refrain/device/stream.hpp"

namespace refrain {

/// Holds an instance for one call (P7), and keeps it: what the call runs or waits for may let go of
/// the handle that the call was made on, after which nothing may look at that any more (P6).
class Hold {
 public:
  explicit Hold(std::shared_ptr<InstanceBody> body) noexcept
      : body_(std::move(body)), held_(!body_->busy.exchange(true)) {}
  ~Hold() {
    if (held_) body_->busy.store(false);
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  [[nodiscard]] const std::shared_ptr<InstanceBody>& body() const noexcept { return body_; }
  [[nodiscard]] Result<void> taken() const {
    if (held_) return {};
    return Error(ErrorKind::busy, "An instance of graph " + body_->plan->graph.title() +
                                      " is in use; it serves one thread at a time.");
  }

 private:
  std::shared_ptr<InstanceBody> body_;
  bool held_;
};

/// Refuses a stream of another device than the instance's.
inline Result<void> of_same_device(const InstanceBody& body, const Stream& stream) {
  if (&stream.device() == body.plan->device.get()) return {};
  return Error(ErrorKind::other_device,
               "Graph " + body.plan->graph.title() + " was given a stream of another device.");
}

}  // namespace refrain
