#include "crew.hpp"

#include <sched.h>

namespace refrain::bench {
namespace {

void spin_until(const std::atomic<bool>& flag) {
  // Yields, because a machine with fewer cores than threads must get there too.
  while (!flag.load(std::memory_order_acquire)) std::this_thread::yield();
}

/// Keeps this thread on the `which`-th core that the process may use, if it has as many: a thread
/// that is moved between two halves of a round finds cold caches, which nothing here is about.
void stay_on_core(int which) {
  cpu_set_t may;
  if (sched_getaffinity(0, sizeof(may), &may) != 0) return;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &may) || which-- != 0) continue;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(core, &only);
    sched_setaffinity(0, sizeof(only), &only);
    return;
  }
}

}  // namespace

Crew::Crew() {
  helper_ = std::thread([this] {
    stay_on_core(1);
    help();
  });
  stay_on_core(0);
}

Crew::~Crew() {
  wanted_.fetch_add(1);
  wanted_.notify_one();
  helper_.join();
}

Nanoseconds Crew::clocked(const Work& work, std::size_t thread) {
  const auto start = std::chrono::steady_clock::now();
  work(thread);
  return between(start, std::chrono::steady_clock::now());
}

void Crew::help() {
  std::uint32_t seen = 0;
  for (;;) {
    wanted_.wait(seen);
    seen = wanted_.load();
    if (seen % 2 == 1) return;
    ready_.store(true, std::memory_order_release);
    while (!go_.load(std::memory_order_acquire)) {
    }
    helped_ = clocked(*work_, 1);
    done_.store(true, std::memory_order_release);
  }
}

Nanoseconds Crew::time(std::size_t threads, const Work& work) {
  if (threads == 1) return clocked(work, 0);
  work_ = &work;
  ready_.store(false);
  go_.store(false);
  done_.store(false);
  wanted_.fetch_add(2);
  wanted_.notify_one();
  spin_until(ready_);
  go_.store(true, std::memory_order_release);
  const Nanoseconds own = clocked(work, 0);
  spin_until(done_);
  return (own + helped_) / 2;
}

}  // namespace refrain::bench
