// The two streams of the host: one that runs work in the caller, and one with a thread and a queue.
// Private to device/host.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "refrain/base/mutex.hpp"
#include "refrain/device/backend.hpp"

namespace refrain::host {

/// A point that work has reached or not. Safe to share.
class HostEvent final : public BackendEvent {
 public:
  void reach() noexcept;
  [[nodiscard]] bool reached() const noexcept;
  void wait() const noexcept;

 private:
  mutable Mutex mutex_;
  mutable std::condition_variable_any changed_;
  bool reached_ REFRAIN_GUARDED_BY(mutex_) = false;
};

class InlineStream final : public BackendStream {
 public:
  [[nodiscard]] bool asynchronous() const noexcept override { return false; }
};

/// Runs what it is given, in order, on a thread of its own. Its destructor runs what is queued:
/// what its last owner is does not matter, so that may also be something that its own work kept.
class WorkerStream final : public BackendStream {
 public:
  explicit WorkerStream(Completion& completion);
  ~WorkerStream() override;

  [[nodiscard]] bool asynchronous() const noexcept override { return true; }

  /// Queues work that may fail and that the completion follows.
  void push(Ticket ticket, std::function<Result<void>()> work);
  /// Queues a step that cannot fail.
  void push(std::function<void()> step);
  /// Waits until all that has been queued so far has run.
  void drain();

 private:
  struct Task {
    Ticket ticket = 0;
    std::function<Result<void>()> work;
  };
  void enqueue(Task task);
  /// Runs what is queued until there is no more to come; stops at once when it is `gone`.
  void loop(const bool& gone);
  void run(const Task& task) noexcept;

  Completion& completion_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Task> queue_ REFRAIN_GUARDED_BY(mutex_);
  bool stopping_ REFRAIN_GUARDED_BY(mutex_) = false;
  bool* gone_ = nullptr;  // for its own thread: tells that thread's loop
  std::thread thread_;    // last: it uses all the others
};

}  // namespace refrain::host
