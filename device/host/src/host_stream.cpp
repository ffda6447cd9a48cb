#include "host_stream.hpp"

#include <exception>
#include <utility>

namespace refrain::host {

void HostEvent::reach() noexcept {
  {
    const Lock lock(mutex_);
    reached_ = true;
  }
  changed_.notify_all();
}

bool HostEvent::reached() const noexcept {
  const Lock lock(mutex_);
  return reached_;
}

void HostEvent::wait() const noexcept {
  const Lock lock(mutex_);
  while (!reached_) changed_.wait(mutex_);
}

WorkerStream::WorkerStream(Completion& completion)
    : completion_(completion), thread_([this] {
        bool gone = false;
        gone_ = &gone;
        loop(gone);
      }) {}

WorkerStream::~WorkerStream() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.get_id() != std::this_thread::get_id()) {
    thread_.join();
    return;
  }
  // Its work was its last owner, and a thread cannot wait for itself: what is left runs here, and
  // the loop around that work is told to touch nothing when it gets back.
  loop(false);
  *gone_ = true;
  thread_.detach();
}

void WorkerStream::enqueue(Task task) {
  {
    const Lock lock(mutex_);
    queue_.push_back(std::move(task));
  }
  changed_.notify_all();
}

void WorkerStream::push(Ticket ticket, std::function<Result<void>()> work) {
  enqueue(Task{ticket, std::move(work)});
}

void WorkerStream::push(std::function<void()> step) {
  enqueue(Task{0, [step = std::move(step)]() -> Result<void> {
                 step();
                 return {};
               }});
}

void WorkerStream::drain() {
  const auto event = std::make_shared<HostEvent>();
  push([event] { event->reach(); });
  event->wait();
}

void WorkerStream::run(const Task& task) noexcept {
  if (task.ticket == 0) {
    static_cast<void>(task.work());
    return;
  }
  const Result<void> ran = completion_.run(task.ticket, task.work);
  completion_.ended(task.ticket, ran.ok() ? nullptr : &ran.error());
}

void WorkerStream::loop(const bool& gone) {
  while (!gone) {
    Task task;
    {
      const Lock lock(mutex_);
      while (queue_.empty() && !stopping_) changed_.wait(mutex_);
      if (queue_.empty()) return;
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    run(task);
  }
}

}  // namespace refrain::host
