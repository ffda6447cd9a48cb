// The device: work that was issued and has not run yet, and the one thread that runs it. Any order
// that the dependencies allow is a legal schedule of a real device; SIM_SEED chooses among them.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "cuda_api.hpp"

namespace sim {

struct Context;
class Driver;

/// A piece of issued work.
struct Op {
  Context* context = nullptr;
  std::vector<std::shared_ptr<Op>> after;  ///< Must end first; emptied when this ends.
  /// Does the work, on the device's thread, without the driver's mutex; answers what a kernel may:
  /// a code that is not CUDA_SUCCESS becomes the context's sticky error. Empty: nothing to do.
  std::function<CUresult()> run;
  bool runs_after_errors = false;  ///< A stream callback, which is told of the error.
  bool done = false;
  std::chrono::steady_clock::time_point ended{};
};

/// Guarded by the driver's mutex.
class Queue {
 public:
  /// `latest_first`: without a seed, of what may run the piece that was issued last runs next: the
  /// order in which a missing dependency shows.
  Queue(std::uint64_t seed, bool latest_first)
      : random_(seed), shuffled_(seed != 0), latest_first_(latest_first) {}

  /// Issues work. `context` is where an error goes.
  std::shared_ptr<Op> add(Driver& driver, Context& context, std::vector<std::shared_ptr<Op>> after,
                          std::function<CUresult()> run, bool runs_after_errors = false);
  /// Everything of a context that has not ended.
  [[nodiscard]] std::vector<std::shared_ptr<Op>> pending(const Context& context) const;

  void hold() noexcept { held_ = true; }
  void release() noexcept { held_ = false; }
  [[nodiscard]] bool held() const noexcept { return held_; }
  /// While held, lets pieces run; see Control::step.
  unsigned step(Driver& driver, std::unique_lock<std::mutex>& lock, unsigned pieces);

 private:
  void work(Driver& driver);
  /// Takes the next piece that may run out of the queue; null: none.
  std::shared_ptr<Op> take();

  std::deque<std::shared_ptr<Op>> waiting_;
  std::vector<std::shared_ptr<Op>> running_;
  std::mt19937_64 random_;
  bool shuffled_;
  bool latest_first_;
  bool held_ = false;
  unsigned steps_ = 0;
  bool stepping_ = false;
  bool started_ = false;
};

}  // namespace sim
