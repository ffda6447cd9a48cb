// Code of the program's that must not call its device (E6): what runs on a worker's thread, the
// nodes of a replay, bodies of native work, and listeners. A call there would use a stream from a
// second thread, or wait for the very work that makes it. So the thread is marked, and calls that
// wait or issue work are refused. Work whose code tried fails with that refusal, since what it
// wanted did not happen.
#pragma once

#include <optional>
#include <string>

#include "refrain/base/error.hpp"
#include "refrain/base/result.hpp"
#include "refrain/base/where.hpp"
#include "refrain/scope/failure_table.hpp"

namespace refrain {

class DeviceCore;

/// What runs in such a place.
struct ForbiddenPlace {
  enum class Kind : std::uint8_t { worker, replay, native, preparing, on_failure, on_unread };
  Kind kind = Kind::worker;
  KernelId kernel{};  // of a worker, a replay or native work; of a graph when preparing
  StreamId stream{};
  Where where{};
};

/// For the thread that runs the code, from before it to after it.
class CallsForbidden {
 public:
  CallsForbidden(const DeviceCore& device, const ForbiddenPlace& place) noexcept
      : device_(device), place_(place), around_(innermost_) {
    innermost_ = this;
  }
  CallsForbidden(const CallsForbidden&) = delete;
  CallsForbidden& operator=(const CallsForbidden&) = delete;
  ~CallsForbidden() { innermost_ = around_; }

  /// Refuses (`wrong_state`) where this thread runs such code of `device`; `call` is what it wants,
  /// as in "Stream 1 cannot sync". Ask `anywhere` first, which is one load.
  static Result<void> look(const DeviceCore& device, const std::string& subject, const char* call);
  [[nodiscard]] static bool anywhere() noexcept { return innermost_ != nullptr; }

  /// The first call that was refused in this code, if any.
  [[nodiscard]] const std::optional<Error>& refused() const noexcept { return refused_; }

 private:
  const DeviceCore& device_;
  ForbiddenPlace place_;
  CallsForbidden* around_;
  std::optional<Error> refused_;
  static inline thread_local constinit CallsForbidden* innermost_ = nullptr;
};

}  // namespace refrain
