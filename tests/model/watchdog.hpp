// Notices an operation that does not come back, because it waits for what the rules do not let it
// wait for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace refrain::model {

/// Calls back when an operation takes too long.
class Watchdog {
 public:
  explicit Watchdog(std::function<void()> late)
      : late_(std::move(late)), thread_([this] { watch(); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Something went on.
  void pat() {
    const std::lock_guard lock(mutex_);
    ++pats_;
  }
  [[nodiscard]] bool barked() {
    const std::lock_guard lock(mutex_);
    return barked_;
  }

 private:
  static constexpr std::chrono::seconds kPatience{5};

  void watch() {
    std::unique_lock lock(mutex_);
    while (!over_) {
      const std::uint64_t seen = pats_;
      if (changed_.wait_for(lock, kPatience, [this] { return over_; })) return;
      if (pats_ != seen || barked_) continue;
      barked_ = true;
      lock.unlock();
      late_();
      lock.lock();
    }
  }

  std::function<void()> late_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t pats_ = 0;
  bool over_ = false;
  bool barked_ = false;
  std::thread thread_;
};

}  // namespace refrain::model
