#include "refrain/device/ledger.hpp"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include "refrain/base/kernel_name.hpp"
#include "refrain/base/text.hpp"
#include "refrain/device/device.hpp"
#include "refrain/device/warm_up_pass.hpp"

namespace refrain {

Ledger::Entry* Ledger::find(Ticket ticket) noexcept {
  if (entries_.empty() || ticket < entries_.front().ticket) return nullptr;
  const std::uint64_t at = ticket - entries_.front().ticket;
  return at < entries_.size() ? &entries_[at] : nullptr;
}

Result<Ticket> Ledger::enter(ScopeShow& show, OpenScope& scope, Work&& work) {
  for (;;) {
    {
      // E10: who follows a failure moves the count before it takes this mutex, so it has either met
      // the scope by now or will find the entry.
      const Lock lock(mutex_);
      if (!device_.table().followed_since(scope)) return enter_now(scope, std::move(work));
    }
    device_.table().meet(show, scope);
  }
}

Result<Ticket> Ledger::enter_now(OpenScope& scope, Work&& work) {
  if (const std::uint64_t bad = scope.poisoned.load(std::memory_order_relaxed); bad != 0) {
    return Error(ErrorKind::skipped, FailureId(bad));
  }
  Entry& entry = entries_.emplace_back();
  entry.ticket = ++last_;
  entry.order = device_.number_issued();
  entry.work = std::move(work);
  for (OpenScope* around = &scope; around != nullptr; around = around->parent) {
    if (around->issued_from == 0) around->issued_from = entry.order;
  }
  return entry.ticket;
}

void Ledger::withdraw(Ticket ticket) noexcept {
  Work gone;  // freed without the lock
  const Lock lock(mutex_);
  if (entries_.empty() || entries_.back().ticket != ticket) return;
  gone = std::move(entries_.back().work);
  entries_.pop_back();
  --last_;
}

ForbiddenPlace Ledger::place(const Entry& entry) const noexcept {
  return {ForbiddenPlace::Kind::worker, entry.work.kernel, stream_, entry.work.where};
}

Result<void> Ledger::run(Ticket ticket, const std::function<Result<void>()>& code) noexcept {
  ForbiddenPlace here{ForbiddenPlace::Kind::worker, {}, stream_, {}};
  {
    const Lock lock(mutex_);
    if (const Entry* const entry = find(ticket)) {
      if (entry->poisoned) return {};  // E10
      here = place(*entry);
    }
  }
  Result<void> ran = [&]() -> Result<void> {
    const CallsForbidden forbidden(device_, here);  // E6
    try {
      Result<void> answered = code();
      if (answered.ok() && forbidden.refused()) return *forbidden.refused();
      return answered;
    } catch (const NodeThrew& threw) {
      return threw.error;
    } catch (...) {
      return Error::thrown(std::current_exception());  // nobody is there to catch it
    }
  }();
  if (!ran.ok()) failed(ticket, ran.error());
  return ran;
}

void Ledger::failed(Ticket ticket, const Error& error) noexcept {
  {
    const Lock lock(mutex_);
    Entry* const entry = find(ticket);
    if (entry == nullptr || entry->failed) return;
    entry->failed = true;
  }
  // Claimed before it counts as ended: whoever waits for a writer looks at its claims next.
  Error told = device_.failed_late(*this, ticket, error);
  const Lock lock(mutex_);
  if (failure_) return;
  failure_ = std::move(told);
  const Entry* const entry = find(ticket);
  if (entry == nullptr) return;
  try {
    failure_ =
        failure_->with_context("It was " + quote(kernel_name(entry->work.kernel)) + " on stream " +
                               std::to_string(stream_.number) + text(entry->work.where) + ".");
  } catch (...) {  // without that line
  }
}

void Ledger::ended(Ticket ticket, const Error* error) noexcept {
  if (error != nullptr) failed(ticket, *error);
  // What it kept goes before anybody hears that it ended, and without the lock: a waiter may ask
  // for the memory, or for the instance, at once.
  const std::shared_ptr<Ledger> self = shared_from_this();  // which may be all that owns the stream
  std::shared_ptr<const void> pin;
  std::vector<std::shared_ptr<const void>> pins;
  ForbiddenPlace here;
  {
    const Lock lock(mutex_);
    if (Entry* const entry = find(ticket)) {
      pin.swap(entry->work.pin);
      pins.swap(entry->work.pins);
      here = place(*entry);
    }
  }
  {
    const CallsForbidden forbidden(device_, here);  // E6: what they own is the program's too
    pin.reset();
    pins.clear();
  }
  {
    const Lock lock(mutex_);
    if (Entry* const entry = find(ticket)) entry->ended = true;
    while (!entries_.empty() && entries_.front().ended) entries_.pop_front();
  }
  ended_.notify_all();
}

void Ledger::asks(std::shared_ptr<BackendStream> silent) noexcept {
  const Lock lock(mutex_);
  silent_.swap(silent);
}

void Ledger::settle(Ticket ticket) noexcept {
  std::shared_ptr<BackendStream> silent;
  {
    const Lock lock(mutex_);
    silent = silent_;
  }
  if (silent == nullptr) return;
  const Settled settled = silent->settle(ticket);
  for (;;) {
    Ticket next = 0;
    {
      const Lock lock(mutex_);
      const auto first = std::find_if(entries_.begin(), entries_.end(),
                                      [](const Entry& entry) { return !entry.ended; });
      if (first == entries_.end()) return;
      next = first->ticket;
    }
    if (next > std::max(settled.through, settled.lost_through)) return;
    ended(next, next > settled.through ? &*settled.lost : nullptr);  // P12
  }
}

void Ledger::look() noexcept {
  std::shared_ptr<BackendStream> silent;
  {
    const Lock lock(mutex_);
    silent = silent_;
  }
  if (silent == nullptr) return;
  silent->look();
  settle(0);
}

bool Ledger::passed(Ticket ticket) const noexcept {
  return std::all_of(entries_.begin(), entries_.end(),
                     [ticket](const Entry& entry) { return entry.ended || entry.ticket > ticket; });
}

void Ledger::wait_through(Ticket ticket) {
  Lock lock(mutex_);
  while (!passed(ticket)) {
    if (silent_ == nullptr) {
      ended_.wait(mutex_);
      continue;
    }
    mutex_.unlock();
    settle(ticket);
    std::this_thread::yield();  // another thread is handing over the work, or telling its end
    mutex_.lock();
  }
}

void Ledger::wait_for(std::span<const BufferBinding> bindings, bool readers, std::uint64_t given) {
  Ticket last = 0;
  {
    const Lock lock(mutex_);
    for (const Entry& entry : entries_) {
      if (entry.ended) continue;
      if ((entry.work.given != 0 && entry.work.given <= given) ||
          overlap(entry.work.bytes->writes, bindings) ||
          (readers && overlap(entry.work.bytes->reads, bindings))) {
        last = entry.ticket;
      }
    }
  }
  if (last != 0) wait_through(last);
}

void Ledger::wait_for_all() {
  Ticket last = 0;
  {
    const Lock lock(mutex_);
    last = last_;
  }
  wait_through(last);
}

void Ledger::tells(WarmUpPass* pass) noexcept {
  const Lock lock(mutex_);
  pass_ = pass;
  of_pass_ = last_ + 1;
}

void Ledger::tell_pass(Ticket ticket, const Error& error) noexcept {
  if (pass_ != nullptr && ticket >= of_pass_) pass_->failed(stream_, error);
}

std::optional<Error> Ledger::take_failure() noexcept {
  const Lock lock(mutex_);
  return std::exchange(failure_, std::nullopt);
}

}  // namespace refrain
