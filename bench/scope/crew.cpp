#include "crew.hpp"

namespace refrain::bench {
namespace {

void spin_until(const std::atomic<bool>& flag) {
  // Yields, because a machine with fewer cores than threads must get there too.
  while (!flag.load(std::memory_order_acquire)) std::this_thread::yield();
}

}  // namespace

Crew::Crew() : helper_([this] { help(); }) {}

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
