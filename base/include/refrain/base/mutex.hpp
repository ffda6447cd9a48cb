// A mutex that clang can check (-Wthread-safety). The standard's own carries no annotations.
#pragma once

#include <mutex>

#if defined(__clang__)
#define REFRAIN_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define REFRAIN_THREAD_ANNOTATION(x)
#endif

#define REFRAIN_GUARDED_BY(x) REFRAIN_THREAD_ANNOTATION(guarded_by(x))
#define REFRAIN_REQUIRES(...) REFRAIN_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define REFRAIN_NO_THREAD_SAFETY_ANALYSIS REFRAIN_THREAD_ANNOTATION(no_thread_safety_analysis)
#define REFRAIN_EXCLUDES(...) REFRAIN_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))

namespace refrain {

/// `std::mutex` with annotations.
class REFRAIN_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void lock() REFRAIN_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  bool try_lock() REFRAIN_THREAD_ANNOTATION(try_acquire_capability(true)) {
    return mutex_.try_lock();
  }
  void unlock() REFRAIN_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

/// Holds a `Mutex` for a block.
class REFRAIN_THREAD_ANNOTATION(scoped_lockable) Lock {
 public:
  explicit Lock(Mutex& mutex) REFRAIN_THREAD_ANNOTATION(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~Lock() REFRAIN_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace refrain
