// A failure that is gone and of which nobody ever read: the last byte that carried it was written
// again or freed before anything told of it. What is known of it, so that a log can say so.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "refrain/base/error.hpp"
#include "refrain/base/where.hpp"

namespace refrain {

/// Made without taking memory, because what lets a failure go may be the end of a launch.
struct UnreadFailure {
  Error error;  ///< Its own error, naming its number.
  KernelId kernel;
  StreamId stream;
  Where where;
  std::uint64_t skips = 0;  ///< How much work did not run because of it.

  /// All of that in sentences.
  [[nodiscard]] std::string text() const;
};

/// Hears of each such failure once, on the thread that let it go. Must not throw, and may not call
/// the device.
using UnreadListener = std::function<void(const UnreadFailure&)>;

}  // namespace refrain
