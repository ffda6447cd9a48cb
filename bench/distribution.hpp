// Many durations of one thing, and what is told of them: never one figure alone, because a median
// without its spread hides a busy machine.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

namespace refrain::bench {

using Nanoseconds = double;

inline Nanoseconds between(std::chrono::steady_clock::time_point from,
                           std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double, std::nano>(to - from).count();
}

/// What is told of many durations. All zero when there were none.
struct Distribution {
  std::size_t count = 0;
  Nanoseconds least = 0;
  Nanoseconds p10 = 0;
  Nanoseconds median = 0;
  Nanoseconds p90 = 0;
  Nanoseconds p99 = 0;
  Nanoseconds most = 0;
};

/// The nearest-rank percentiles of `samples`.
Distribution distribution(std::vector<Nanoseconds> samples);

/// How long one measurement goes on: until it has `samples`, or `seconds` are over and there are a
/// few all the same.
struct Effort {
  std::size_t samples = 2000;
  double seconds = 0.4;

  /// Calls `sample` with nothing, some rounds to warm up and then until there is enough; each call
  /// is told whether it counts.
  template <class Sample>
  void spend(Sample sample) const {
    constexpr std::size_t kFew = 5;
    for (std::size_t round = 0; round < kFew; ++round) sample(false);
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t round = 0; round < samples; ++round) {
      const double spent = between(start, std::chrono::steady_clock::now()) * 1e-9;
      if (round >= kFew && spent > seconds) break;
      sample(true);
    }
  }
};

}  // namespace refrain::bench
