#include "simcuda/user_object.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace sim {
namespace {

/// Runs destructors, in the order in which their objects died; none once the process ends.
class Reaper {
 public:
  /// Never destroyed, as the driver: the device's thread may release until the very end.
  static Reaper& get() {
    static auto* const kReaper = new Reaper;
    static const AtExit kAtExit;
    return *kReaper;
  }

  void add(CUhostFn destroy, void* value) {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    waiting_.emplace_back(destroy, value);
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
    changed_.notify_one();
  }

  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

 private:
  struct AtExit {
    AtExit() = default;
    AtExit(const AtExit&) = delete;
    AtExit& operator=(const AtExit&) = delete;
    ~AtExit() { get().stop(); }
  };

  Reaper() = default;

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
  }

  void work() {
    this_thread().in_host_function = true;
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
      if (stopping_) return;
      const auto [destroy, value] = waiting_.front();
      waiting_.pop_front();
      lock.unlock();
      destroy(value);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<CUhostFn, void*>> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace

void retain(UserObject& object, unsigned count) { object.references += count; }

void release(UserObject& object, unsigned count, const char* function) {
  if (count > object.references) {
    give_up(function, "was to release more references to a user object than there are");
  }
  object.references -= count;
  if (object.references != 0) return;
  destroy(object, function);
  Reaper::get().add(object.destroy, object.value);
}

HeldReferences::HeldReferences(std::map<UserObject*, unsigned> references)
    : objects(std::move(references)) {
  for (const auto& [object, count] : objects) retain(*object, count);
}

HeldReferences::~HeldReferences() {
  for (const auto& [object, count] : objects) release(*object, count, "cuGraphExecDestroy");
}

}  // namespace sim
