// Where kernels of workers wait: at the gate of a worker that is held, and before they fail until
// it is their turn, so that failures of several workers are found in the order that the model says.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>

namespace refrain::model {

/// Safe to share.
class Turnstile {
 public:
  /// Says that the calling thread is the worker of `stream`.
  static void here(int stream) { stream_of_this_thread() = stream; }

  void open_gate(int stream) { give(gates_, stream); }
  void let_fail(int stream) { give(turns_, stream); }
  /// Nobody waits here any more.
  void open_all() {
    {
      const std::lock_guard lock(mutex_);
      all_ = true;
    }
    changed_.notify_all();
  }

  // For kernels.

  void pass_gate() { take(gates_); }
  /// On a worker; elsewhere a kernel fails at once.
  void before_failing() {
    if (stream_of_this_thread() >= 0) take(turns_);
  }

 private:
  static int& stream_of_this_thread() {
    thread_local int stream = -1;
    return stream;
  }
  void give(std::map<int, int>& counts, int stream) {
    {
      const std::lock_guard lock(mutex_);
      ++counts[stream];
    }
    changed_.notify_all();
  }
  void take(std::map<int, int>& counts) {
    std::unique_lock lock(mutex_);
    int& count = counts[stream_of_this_thread()];
    changed_.wait(lock, [&] { return all_ || count > 0; });
    --count;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, int> gates_;
  std::map<int, int> turns_;
  bool all_ = false;
};

}  // namespace refrain::model
