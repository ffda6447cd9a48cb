#include "refrain/device/ledger.hpp"

#include <algorithm>
#include <utility>

#include "refrain/device/device.hpp"
#include "refrain/device/warm_up_pass.hpp"

namespace refrain {

Ledger::Entry* Ledger::find(Ticket ticket) noexcept {
  if (entries_.empty() || ticket < entries_.front().ticket) return nullptr;
  const std::uint64_t at = ticket - entries_.front().ticket;
  return at < entries_.size() ? &entries_[at] : nullptr;
}

Result<Ticket> Ledger::enter(ScopeShow& show, OpenScope& scope, Work work) {
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

Result<Ticket> Ledger::enter_now(OpenScope& scope, Work work) {
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

bool Ledger::may_run(Ticket ticket) noexcept {
  const Lock lock(mutex_);
  const Entry* const entry = find(ticket);
  if (entry == nullptr) return true;
  if (entry->poisoned) return false;
  running_.emplace(device_, ForbiddenPlace{ForbiddenPlace::Kind::worker, entry->work.kernel,
                                           stream_, entry->work.where});
  return true;
}

void Ledger::ended(Ticket ticket, const Error* error) noexcept {
  // Claimed before it counts as ended: whoever waits for a writer looks at its claims next.
  if (error == nullptr && running_ && running_->refused()) error = &*running_->refused();  // E6
  std::optional<Error> told;
  if (error != nullptr) told = device_.failed_late(*this, ticket, *error);
  // What it kept goes before anybody hears that it ended, and without the lock: a waiter may ask
  // for the memory, or for the instance, at once.
  const std::shared_ptr<Ledger> self = shared_from_this();  // which may be all that owns the stream
  std::vector<std::shared_ptr<const void>> pins;
  {
    const Lock lock(mutex_);
    if (Entry* const entry = find(ticket)) pins.swap(entry->work.pins);
  }
  pins.clear();
  {
    const Lock lock(mutex_);
    if (told && !failure_) failure_ = std::move(told);
    if (Entry* const entry = find(ticket)) entry->ended = true;
    while (!entries_.empty() && entries_.front().ended) entries_.pop_front();
  }
  ended_.notify_all();
  running_.reset();  // after the pins: what they own is the program's too
}

void Ledger::wait_for(std::span<const BufferBinding> bindings, bool readers, std::uint64_t given) {
  Lock lock(mutex_);
  Ticket last = 0;
  for (const Entry& entry : entries_) {
    if (entry.ended) continue;
    if ((entry.work.given != 0 && entry.work.given <= given) ||
        overlap(entry.work.bytes->writes, bindings) ||
        (readers && overlap(entry.work.bytes->reads, bindings))) {
      last = entry.ticket;
    }
  }
  const auto passed = [this, last]() REFRAIN_REQUIRES(mutex_) {
    return std::all_of(entries_.begin(), entries_.end(),
                       [last](const Entry& entry) { return entry.ended || entry.ticket > last; });
  };
  while (!passed()) ended_.wait(mutex_);
}

void Ledger::wait_for_all() {
  Lock lock(mutex_);
  const Ticket last = last_;
  while (!entries_.empty() && entries_.front().ticket <= last) ended_.wait(mutex_);
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
