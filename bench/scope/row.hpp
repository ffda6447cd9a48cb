// One row: something measured against its floor. Both run in every round, one after the other and
// in turns who is first, so that whatever else the machine does meets both; the ratio is taken
// round by round. A figure without its floor says more about the machine than about the library.
#pragma once

#include <benchmark/benchmark.h>

#include <cstddef>
#include <optional>
#include <string>

#include "crew.hpp"

namespace refrain::bench {

/// How much is measured: rounds a row, and calls in each half of a round.
struct Extent {
  std::size_t rounds = 101;
  std::size_t calls = 2048;
};

/// What is called, `calls` times in each half of a round: once unmeasured, then measured.
struct Subject {
  Work work;
  std::size_t threads = 1;
  /// What puts things back after it; not measured. May be empty.
  std::function<void()> mend{};
};

struct Row {
  std::string name;
  Subject floor;
  Subject subject;
  std::size_t calls = 1;  ///< How many calls both make in each half of a round.
  /// Measured in the same rounds; the goal is then for the subject's time over this one's.
  std::optional<Subject> base{};
  /// At most so many times the floor, or the base; 0 where there is no goal.
  double goal = 0;
  /// Whether an allocation is a goal missed.
  bool allocates_nothing = false;
};

/// Registers `row` with Google Benchmark. Its counters: `ns` and `floor_ns` are medians of one
/// call, `ratio` the median of the rounds' ratios, `spread` how far the floor's p90 and p10 lie
/// apart, over its median; `allocations` are those of one call of thread 0. Where the spread is
/// over 10 % the row is `noisy` and counts for nothing.
void add(const Row& row, Crew& crew, const Extent& extent);

}  // namespace refrain::bench
