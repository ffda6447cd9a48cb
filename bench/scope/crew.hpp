// Two threads that measure at the same time, each on a core of its own: the caller's and one more,
// which sleeps while only one is wanted, so that it takes nothing from the one that is measured.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>

#include "distribution.hpp"

namespace refrain::bench {

/// What one thread does in one half of a round, given its number.
using Work = std::function<void(std::size_t thread)>;

/// For the thread that made it.
class Crew {
 public:
  Crew();
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// How long `work` takes on `threads` threads, 1 or 2, that start together: the mean of what each
  /// of them measured.
  Nanoseconds time(std::size_t threads, const Work& work);

 private:
  void help();
  static Nanoseconds clocked(const Work& work, std::size_t thread);

  const Work* work_ = nullptr;
  Nanoseconds helped_ = 0;
  std::atomic<std::uint32_t> wanted_{0};  // counts calls for help; odd when the last one is to end
  std::atomic<bool> ready_{false};
  std::atomic<bool> go_{false};
  std::atomic<bool> done_{false};
  std::thread helper_;
};

}  // namespace refrain::bench
