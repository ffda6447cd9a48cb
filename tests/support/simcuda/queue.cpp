#include "simcuda/queue.hpp"

#include <algorithm>

#include "simcuda/driver.hpp"

namespace sim {
namespace {

bool ready(const Op& op) {
  return std::all_of(op.after.begin(), op.after.end(), [](const auto& each) { return each->done; });
}

}  // namespace

std::shared_ptr<Op> Queue::add(Driver& driver, Context& context,
                               std::vector<std::shared_ptr<Op>> after,
                               std::function<CUresult()> run, bool runs_after_errors) {
  auto op = std::make_shared<Op>();
  op->context = &context;
  op->after = std::move(after);
  op->run = std::move(run);
  op->runs_after_errors = runs_after_errors;
  waiting_.push_back(op);
  if (!started_) {
    // It lives as long as the process, as a driver's threads do: destructors of the program's own
    // statics may still wait for work.
    std::thread([this, &driver] { work(driver); }).detach();
    started_ = true;
  }
  driver.changed.notify_all();
  return op;
}

std::vector<std::shared_ptr<Op>> Queue::pending(const Context& context) const {
  std::vector<std::shared_ptr<Op>> ops;
  const auto add_its = [&](const auto& from) {
    for (const auto& op : from) {
      if (op->context == &context) ops.push_back(op);
    }
  };
  add_its(running_);
  add_its(waiting_);
  return ops;
}

std::shared_ptr<Op> Queue::take() {
  std::vector<std::size_t> candidates;
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    if (!ready(*waiting_[i])) continue;
    candidates.push_back(i);
    if (!shuffled_ && !latest_first_)
      break;  // in the order of issue the first that may run is next
  }
  if (candidates.empty()) return nullptr;
  const std::size_t at = shuffled_ ? candidates[random_() % candidates.size()] : candidates.back();
  auto op = std::move(waiting_[at]);
  waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(at));
  return op;
}

void Queue::work(Driver& driver) {
  std::unique_lock lock(driver.mutex);
  for (;;) {
    std::shared_ptr<Op> op;
    if (!held_ || steps_ > 0) op = take();
    if (op == nullptr) {
      driver.changed.wait(lock);
      continue;
    }
    running_.push_back(op);
    CUresult result = CUDA_SUCCESS;
    if (op->run && (op->context->error == CUDA_SUCCESS || op->runs_after_errors)) {
      lock.unlock();
      result = op->run();
      lock.lock();
    }
    if (result != CUDA_SUCCESS && op->context->error == CUDA_SUCCESS) op->context->error = result;
    op->run = nullptr;
    op->after.clear();
    op->ended = std::chrono::steady_clock::now();
    op->done = true;
    running_.clear();
    if (steps_ > 0) --steps_;
    driver.changed.notify_all();
  }
}

unsigned Queue::step(Driver& driver, std::unique_lock<std::mutex>& lock, unsigned pieces) {
  // One caller at a time: each is told of its own pieces.
  driver.changed.wait(lock, [&] { return !stepping_; });
  stepping_ = true;
  steps_ = pieces;
  driver.changed.notify_all();
  driver.changed.wait(lock, [&] {
    const bool none_ready =
        std::none_of(waiting_.begin(), waiting_.end(), [](const auto& op) { return ready(*op); });
    return running_.empty() && (steps_ == 0 || none_ready);
  });
  const unsigned ran = pieces - steps_;
  steps_ = 0;
  stepping_ = false;
  driver.changed.notify_all();
  return ran;
}

}  // namespace sim
